#!/usr/bin/env python3
"""ci/slurm on a real Slurm of one node: slurmctld, slurmd and munged are started here as this user,
with files and ports of their own, and stopped by their process ids. Four tasks on the CPU, of which
one is killed, one is requeued, one is told that its time is up, one finds its disk full; the node is set
down and resumed meanwhile.
Nothing may be lost, and what is merged is a single run's but for its times.

usage: slurm_test.py BENCH_TOPP PERFWATCH SOURCE_DIR
Exit code 77, with the reason, where Slurm is not installed or cannot be started.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import TIMED, finish, need, need_run, read_json, run

BENCH, PERFWATCH, SOURCE = (os.path.realpath(word) for word in sys.argv[1:4])
SUBMIT = os.path.join(SOURCE, "ci", "slurm", "submit")
NEEDED = ("slurmctld", "slurmd", "sbatch", "scontrol", "scancel", "sinfo", "munged")
SHARDS = 4
MERGED = {"shard", "device_uuid"}


class Skip(Exception):
    pass


def wait_for(what, seconds, probe):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = probe()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Slurm:
    """The three daemons; a context manager."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, []
        self.environment = dict(os.environ, SLURM_CONF=os.path.join(folder, "slurm.conf"))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def configure(self):
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        host = subprocess.run(["hostname", "-s"], capture_output=True, text=True).stdout.strip()
        control, node = free_ports(2)
        for name in ("state", "spool"):
            os.mkdir(self.path(name))
        with open(self.path("munge.key"), "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(self.path("munge.key"), 0o600)
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(f"""ClusterName=topp
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={control}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={self.path('munge.socket')},cred_expire=5
CredType=cred/munge
StateSaveLocation={self.path('state')}
SlurmdSpoolDir={self.path('spool')}
SlurmctldPidFile={self.path('slurmctld.pid')}
SlurmdPidFile={self.path('slurmd.pid')}
SlurmctldLogFile={self.path('slurmctld.log')}
SlurmdLogFile={self.path('slurmd.log')}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=100000,bf_interval=1,batch_sched_delay=0
KillWait=1
ReturnToService=0
SlurmctldTimeout=60
SlurmdTimeout=60
NodeName={host} NodeAddr=127.0.0.1 CPUs={SHARDS} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
        self.node = host

    def start(self, *words):
        log = open(self.path(os.path.basename(words[0]) + ".out"), "wb")
        daemon = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  env=self.environment)
        log.close()
        self.daemons.append(daemon)
        return daemon

    def logs(self):
        text = ""
        for name in ("munged.out", "slurmctld.out", "slurmctld.log", "slurmd.out", "slurmd.log"):
            if os.path.exists(self.path(name)):
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    text += f"--- {name}\n" + "".join(file.readlines()[-15:])
        return text

    def __enter__(self):
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing:
            raise Skip(f"not installed: {', '.join(missing)} (Debian: slurm-wlm, munge)")
        self.configure()
        try:
            self.start("munged", "--foreground", "--force", "--key-file", self.path("munge.key"),
                       "--socket", self.path("munge.socket"), "--pid-file", self.path("munged.pid"),
                       "--log-file", self.path("munged.log"), "--seed-file", self.path("munge.seed"))
            wait_for("munged", 10, lambda: os.path.exists(self.path("munge.socket")))
            self.start("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
            self.start("slurmd", "-D", "-f", self.environment["SLURM_CONF"], "-N", self.node)
            wait_for("an idle node", 20, self.idle)
        except AssertionError as reason:
            text = self.logs()
            self.__exit__(None, None, None)
            raise Skip(f"Slurm is installed, but cannot be started here: {reason}\n{text}") from None
        return self

    def idle(self):
        if any(daemon.poll() is not None for daemon in self.daemons):
            raise AssertionError("a daemon ended")
        done = self.run("sinfo", "--noheader", "--format=%t", may_fail=True)
        return done.strip() == "idle"

    def __exit__(self, *unused):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def run(self, *words, may_fail=False):
        code, out, err = run(*words, env=self.environment, timeout=60)
        need(f"{words}: {out}{err}", may_fail or code == 0)
        return out

    def job(self, job):
        """Fields of scontrol show job, of a task if job is ARRAY_TASK."""
        text = self.run("scontrol", "show", "job", job, "--oneliner", may_fail=True)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def state(self, job):
        return self.job(job).get("JobState", "GONE")


def write_profile(path):
    """The cells of smoke that matter here, timed long enough to be interrupted."""
    with open(os.path.join(SOURCE, "profiles", "smoke.json"), encoding="utf-8") as file:
        profile = json.load(file)
    profile["name"] = "slurm"
    profile["timing"].update(blocks=4, block_seconds=0.04, max_samples=100000, precision=1e-6)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(profile, file, indent=1)


def journal(folder):
    """Lines that are whole: a torn last one does not count."""
    try:
        with open(os.path.join(folder, "journal.jsonl"), "rb") as file:
            return file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


def blocks(lines):
    return [line for line in lines if b'"line":"block"' in line]


def sweep_of(task):
    """Process id of the task's bench_topp, by what Slurm put into its environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = file.read().split(b"\0")
            if b"SLURM_ARRAY_TASK_ID=%d" % task in words and \
                    os.path.realpath(os.readlink(f"/proc/{pid}/exe")) == BENCH:
                return int(pid)
        except OSError:
            continue
    return None


class SmallDisk:
    """A file system of its own for one shard, full after some kilobytes; None where mounting is not
    allowed."""

    def __init__(self, folder):
        os.makedirs(folder)
        self.folder = folder
        self.mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
                                      capture_output=True).returncode == 0

    def grow(self):
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,size=64m", self.folder], check=True)

    def close(self):
        if self.mounted: # lazily: a task may still stand in it
            subprocess.run(["umount", "--lazy", self.folder], check=True)


def submit(slurm, out, base, small_file):
    """small_file: instead of a small disk, the third task may not write more than that."""
    words = [SUBMIT, "--shards", str(SHARDS), "--out", out, "--base", base, "--programs",
             os.path.dirname(BENCH), "--compare", "--margin=2000%", "--compare", "--subset", "--",
             "--profile", slurm.path("slurm.json"), "--profile-dir",
             os.path.join(SOURCE, "profiles"), "--device", "cpu", "--threads", "1"]
    programs = slurm.path("programs")
    if not os.path.isdir(programs):
        os.mkdir(programs)
        os.symlink(PERFWATCH, os.path.join(programs, "perfwatch"))
        with open(os.path.join(programs, "bench_topp"), "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\n"
                       f'if [ "${{SLURM_ARRAY_TASK_ID-}}" = 3 ] && [ -e "{small_file}" ]; then\n'
                       "  trap '' XFSZ; ulimit -f 64\nfi\n"
                       f'exec "{BENCH}" "$@"\n')
        os.chmod(os.path.join(programs, "bench_topp"), 0o755)
    words[words.index(os.path.dirname(BENCH))] = programs
    lines = slurm.run(*words).split()
    need("what submit says", lines[0] == "sweep" and lines[2] == "merge", lines)
    return lines[1], lines[3]


def finished(slurm, job, *states):
    state = slurm.state(job)
    need(f"job {job} is {state}, not {states}\n{slurm.logs()}",
         state not in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "GONE") or state in states)
    return state in states


def log_of(out, name):
    with open(os.path.join(out, "logs", name), encoding="utf-8", errors="replace") as file:
        return file.read()


def trouble(slurm, out, array):
    """Kills, requeues and takes the node away while tasks run; returns what was in the journals."""
    folders = {task: os.path.join(out, f"shard-{task}-of-{SHARDS}") for task in (1, 2, 4)}
    kept = {}
    for task, folder in folders.items():
        wait_for(f"blocks of task {task}", 40, lambda: len(blocks(journal(folder))) >= 3)
    os.kill(wait_for("task 1's process", 5, lambda: sweep_of(1)), signal.SIGKILL)
    slurm.run("scontrol", "requeue", f"{array}_2")
    # What Slurm sends before the time limit (shard.sbatch: --signal).
    slurm.run("scancel", "--batch", "--signal=USR1", f"{array}_4")
    for task in (1, 2, 4):
        wait_for(f"task {task} to end", 20, lambda: sweep_of(task) is None)
        kept[task] = journal(folders[task])
    # Both are back, or will be: now the node.
    for task in (1, 4):
        wait_for(f"task {task} in the queue again", 20,
                 lambda: slurm.job(f"{array}_{task}").get("Restarts") == "1")
    wait_for("task 1 to run again", 20, lambda: sweep_of(1))
    slurm.run("scontrol", "update", f"nodename={slurm.node}", "state=down", "reason=test")
    wait_for("no task left", 20, lambda: not any(sweep_of(task) for task in folders))
    for task, folder in folders.items():
        now = journal(folder)
        need(f"task {task}: its journal lost lines",
             now[:len(kept.get(task, []))] == kept.get(task, []))
        kept[task] = now
    slurm.run("scontrol", "update", f"nodename={slurm.node}", "state=resume")
    return folders, kept


def same_but_times(single, merged):
    one, many = (read_json(folder, "results.json") for folder in (single, merged))
    need("another order", [c["name"] for c in one["cells"]] == [c["name"] for c in many["cells"]])
    for left, right in zip(one["cells"], many["cells"]):
        for key in left.keys() | right.keys():
            need(f"{left['name']}: {key} is {left.get(key)} and {right.get(key)}",
                 key in TIMED | MERGED or left[key] == right[key])
        need(f"{left['name']}: timed in one alone",
             (left["median_ns"] is None) == (right["median_ns"] is None))
    need(f"{one['summary']} and {many['summary']}", one["summary"] == many["summary"])


def test(scratch, slurm, disk_folder):
    out, single = os.path.join(scratch, "out"), os.path.join(scratch, "single")
    small_file = os.path.join(scratch, "no-space")
    write_profile(slurm.path("slurm.json"))
    disk = SmallDisk(disk_folder)
    if not disk.mounted:
        print("no mount here: task 3 may write no file beyond 64 KiB instead")
        open(small_file, "w", encoding="utf-8").close()
    alone = subprocess.Popen([BENCH, "--sweep", "--profile", slurm.path("slurm.json"),
                              "--profile-dir", os.path.join(SOURCE, "profiles"), "--device", "cpu",
                              "--threads", "1", "--out", single],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        os.makedirs(single, exist_ok=True)
        array, merge = submit(slurm, out, single, small_file)
        folders, kept = trouble(slurm, out, array)
        need("the single run", alone.wait(60) == 0, alone.stderr.read())

        wait_for("the first merge", 60, lambda: finished(slurm, merge, "FAILED"))
        text = log_of(out, f"{merge}.log")
        need("the merge names the mend", "shard-3-of-4: holds a run that did not finish" in text and
             "submit the same again" in text, text)
        need("tasks 3 and 4", "Restarts" in slurm.job(f"{array}_4") and
             slurm.state(f"{array}_3") == "FAILED", slurm.job(f"{array}_3"))
        text = log_of(out, f"{array}_3.log")
        need("the full disk", ("No space left" if disk.mounted else "File too large") in text and
             "--resume goes on" in text and "exit code 2" in text, text)
        for task, folder in folders.items():
            lines = journal(folder)
            need(f"task {task}: its journal lost lines", lines[:len(kept[task])] == kept[task])
            need(f"task {task} did not finish", json.loads(lines[-1]) == {"end": True})
            need(f"task {task}: a block twice", len(set(blocks(lines))) == len(blocks(lines)))
        need("task 1 was killed", "exit code 137, queued again" in log_of(out, f"{array}_1.log"))
        need("task 4's time was up", "exit code 4, queued again" in log_of(out, f"{array}_4.log"))

        # There is room again: the same once more goes on with what is missing.
        third = os.path.join(out, f"shard-3-of-{SHARDS}")
        before = journal(third)
        need("nothing of task 3 is left", blocks(before) or before)
        disk.grow()
        if os.path.exists(small_file):
            os.remove(small_file)
        array, merge = submit(slurm, out, single, small_file)
        wait_for("the second merge", 60, lambda: finished(slurm, merge, "COMPLETED"))
        need("task 3's journal lost lines", journal(third)[:len(before)] == before)
        same_but_times(single, out)
        verdict = read_json(out, "verdict.json")
        need("the verdict", verdict["exit_code"] == 0 and not verdict["counts"].get("correctness"),
             verdict["headline"])
        text = need_run(0, BENCH, "--verify", os.path.join(out, "receipt.json"), "--profile-dir",
                        os.path.join(SOURCE, "profiles"))
        need("--verify", "shards       24 verified" in text, text)
    finally:
        if alone.poll() is None:
            alone.kill()
        alone.wait()
        alone.stderr.close()
        disk.close()


def main():
    scratch = tempfile.mkdtemp(prefix="topp-slurm-")
    began = time.monotonic()
    small = os.path.join(scratch, "out", f"shard-3-of-{SHARDS}")
    try:
        os.mkdir(os.path.join(scratch, "slurm"))
        with Slurm(os.path.join(scratch, "slurm")) as slurm:
            try:
                test(scratch, slurm, small)
            except AssertionError:
                print(slurm.run("scontrol", "show", "job", may_fail=True), slurm.logs(), sep="\n")
                raise
        finish(f"{time.monotonic() - began:.0f} s")
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
