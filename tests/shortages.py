"""Memory that runs out where a test says so."""

import torch


def run_out_in_optimizer(monkeypatch, number):
    """Have the step of AdamW of this number, from 0 on, run out of memory when it has moved some weights already."""
    step, calls = torch.optim.AdamW.step, []

    def short(self, closure=None):
        calls.append(1)
        if len(calls) == number + 1:
            with torch.no_grad():
                self.param_groups[0]["params"][0].add_(1.0)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return step(self, closure)

    monkeypatch.setattr(torch.optim.AdamW, "step", short)
