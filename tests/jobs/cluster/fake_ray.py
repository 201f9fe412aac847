"""As much of Ray as jobs use, in threads of this process: machines that can be lost, and others that join."""

import threading
import time
from types import SimpleNamespace


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause):
        super().__init__(str(cause))
        self.cause = cause


class NodeDiedError(RayError):
    pass


class TaskUnschedulableError(RayError):
    pass


class GetTimeoutError(RayError):
    pass


class Reference:
    def __init__(self):
        self.over, self.value, self.error, self.node, self.cancelled = threading.Event(), None, None, None, False


class Here(threading.local):
    node = "first"


HERE = Here()


class FakeRay:
    """A cluster whose machines are names with resources; `lose` takes one away, `join` adds one."""

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=RayTaskError,
        NodeDiedError=NodeDiedError,
        TaskUnschedulableError=TaskUnschedulableError,
        GetTimeoutError=GetTimeoutError,
    )
    util = SimpleNamespace(
        scheduling_strategies=SimpleNamespace(
            NodeAffinitySchedulingStrategy=lambda node, soft: SimpleNamespace(node=node)
        )
    )

    def __init__(self, **machines):
        self.lock = threading.RLock()
        self.machines = {name: dict(resources) for name, resources in machines.items()}
        self.free = {name: dict(resources) for name, resources in self.machines.items()}
        self.alive = set(self.machines)
        self.running, self.given, self.connected = [], [], False

    def init(self, address, **options):
        self.connected = True

    def shutdown(self):
        self.connected = False

    def nodes(self):
        with self.lock:
            return [
                {"NodeID": name, "Alive": name in self.alive, "Resources": dict(resources), "NodeManagerHostname": name}
                for name, resources in self.machines.items()
            ]

    def get_runtime_context(self):
        return SimpleNamespace(get_node_id=lambda: HERE.node)

    def join(self, name, **resources):
        with self.lock:
            self.machines[name], self.free[name] = dict(resources), dict(resources)
            self.alive.add(name)

    def lose(self, name):
        """The machine is gone, and what it runs is begun elsewhere."""
        with self.lock:
            self.alive.discard(name)
            lost = [each for each in self.running if each[0].node == name]
        for reference, again in lost:
            reference.node = None
            again()

    def remote(self, *arguments, **options):
        if arguments:
            return Remote(self, arguments[0], {})
        return lambda function: Remote(self, function, options)

    def get(self, what, timeout=None):
        if isinstance(what, list):
            return [self.get(each, timeout) for each in what]
        if not what.over.wait(timeout):
            raise GetTimeoutError("no answer")
        if what.error is not None:
            raise what.error
        return what.value

    def wait(self, references, num_returns=1, timeout=None):
        until = time.monotonic() + (1e9 if timeout is None else min(timeout, 0.05))
        while True:
            done = [each for each in references if each.over.is_set()]
            if len(done) >= num_returns or time.monotonic() >= until:
                return done, [each for each in references if each not in done]
            time.sleep(0.002)

    def cancel(self, reference):
        reference.cancelled = True


class Remote:
    def __init__(self, ray, what, options):
        self.ray, self.what, self.settings = ray, what, options

    def options(self, **options):
        return Remote(self.ray, self.what, {**self.settings, **options})

    def remote(self, *arguments):
        if isinstance(self.what, type):
            return Actor(self.what(*arguments))
        reference = Reference()
        self.ray.given.append((self.settings, arguments))
        self._begin(reference, arguments, self.settings.get("max_retries", 3))
        return reference

    def _begin(self, reference, arguments, retries):
        attempt = object()
        reference.attempt = attempt

        def work():
            node = self._placed(reference)
            if node is None:
                reference.error = RayError("cancelled")
                reference.over.set()
                return
            HERE.node = reference.node = node
            again = lambda: self._begin(reference, arguments, retries - 1)  # noqa: E731
            entry = (reference, again)
            with self.ray.lock:
                self.ray.running.append(entry)
            value = error = None
            try:
                value = self.what(*arguments)
            except Exception as raised:
                error = raised
            with self.ray.lock:
                self.ray.running = [each for each in self.ray.running if each is not entry]
                for name, count in self._need().items():
                    self.ray.free[node][name] = self.ray.free[node].get(name, 0) + count
            if reference.attempt is not attempt:  # its machine was lost meanwhile
                return
            wanted = self.settings.get("retry_exceptions") or []
            if error is not None and retries > 0 and isinstance(error, tuple(wanted)):
                again()
                return
            reference.value, reference.error = value, None if error is None else RayTaskError(error)
            reference.over.set()

        threading.Thread(target=work, daemon=True).start()

    def _need(self):
        return {"CPU": self.settings.get("num_cpus", 1), "GPU": self.settings.get("num_gpus", 0)}

    def _placed(self, reference):
        """A machine that has room, once there is one."""
        strategy, selector = self.settings.get("scheduling_strategy"), self.settings.get("label_selector", {})
        avoided = selector.get("ray.io/node-id", "!in()").removeprefix("!in(").removesuffix(")").split(",")
        while not reference.cancelled:
            with self.ray.lock:
                named = [strategy.node] if isinstance(strategy, SimpleNamespace) else sorted(self.ray.alive)
                for name in sorted(named, key=lambda each: -self.ray.free[each].get("CPU", 0)):
                    free, need = self.ray.free[name], self._need()
                    if name not in avoided and all(free.get(key, 0) >= count for key, count in need.items()):
                        for key, count in need.items():
                            free[key] = free.get(key, 0) - count
                        return name
            time.sleep(0.002)
        return None


class Actor:
    def __init__(self, instance):
        self.instance, self.lock = instance, threading.Lock()

    def __getattr__(self, name):
        def remote(*arguments):
            reference = Reference()
            with self.lock:
                reference.value = getattr(self.instance, name)(*arguments)
            reference.over.set()
            return reference

        return SimpleNamespace(remote=remote)
