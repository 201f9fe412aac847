"""The one runner of trainings: searches and comparisons put jobs into a queue, and workers do them.

A **job** (`job.py`) is a training as a value: its class says what is done, its fields with what. It names files and not
objects, so that any process that sees these files can do it. `pretraining.py` has what the jobs of searches and of
comparisons have in common.

A **queue** (`runner.py`) knows which job may begin, and takes the outcomes: a search has the trials of an evaluation, a
comparison its schedule. The **runner** gives the next job to whoever is free, shows the progress of all that run, and
hands on notes and outcomes. It keeps nothing: the truth is in the files of the runs, which a job goes on with if it is
given again.

**Workers** do the jobs: this process one after the other (`runner.InThisProcess`), processes side by side
(`processes.py`; one of them is `worker_process.py`, its other side `serving.py`), the machines of a Ray cluster
(`cluster`), or others with the members of the protocol `job.Workers`; `choice.py` has what the user asks for:

- `slots`: the number of jobs at once. Each slot has a device (`resources.threads` divides those of this machine), which
  takes the place of the device that a job names.
- `threads`: the number of threads of each job, which decides the last bits of a result.
- `begin(key, job)`: begin a job; called for at most `slots` jobs at a time.
- `wait(noted)`: wait until a job is done; return its key and its outcome, and call `noted(key, note)` for each note on
  the way. Errors of a job are raised here: a `UserError` for a mistake of the user's or a lost worker, `Interrupted`
  for a training that was asked to stop, `DiskFull`; anything else is a bug. It returns None where there are more slots
  than before, so that further jobs may begin.

Who makes workers also ends them, and with them all jobs that run: after an error or a signal the jobs are asked to save
a checkpoint (by SIGTERM), and are waited for, as `Processes.__exit__` does.

Workers on another machine send `job.message()`, call `job_of(message, device).carry_out` there, and send back the notes
and the outcome, which JSON can hold; `tests/jobs/threads.py` has workers that are threads. Results do not depend on
who did a job, or which ended first. If the first was lost, another one has the same job, which
goes on with what is there.
"""
