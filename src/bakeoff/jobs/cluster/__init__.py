"""Jobs on a Ray cluster: one Ray task a job, on whichever machine is free.

Ray only schedules. Everything that has to outlive a machine, the cluster or the command itself is in the folders of the
runs, on a disk that all machines share, so that a job that is given again goes on from its checkpoint.

| file | |
|---|---|
| `workers.py` | the command's side: gives jobs to Ray, and takes notes and outcomes |
| `task.py` | a machine's side: does one job in a process, as `bakeoff.jobs.processes` does it on one machine |
| `mailbox.py` | the notes between both |
| `machines.py` | a machine: whether it shares the disk, and its device |
| `roll_call.py` | all machines are asked what they are before anything starts |
"""
