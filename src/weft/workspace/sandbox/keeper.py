"""The keeper: a small program inside the sandbox that gives each command a cell of its own.

It is started once, by bubblewrap, in a place where the whole disk is read-only, there is no
network, and nothing outside can be seen or signalled.  It makes cells: a cell is a process in a
process namespace of its own, and runs one command after the other.  For each it makes a fresh view
of the disk: the project under an overlay, a `/tmp`, a `/proc` that shows the cell, and nothing
where secrets lie.  The command starts without a capability and under a system call filter.  It ends
when its first process ends; whatever it left running is killed before the end is reported, and the
view is taken apart.

A read-only mount lets named pipes be written to, and a filter does not see what is opened; Landlock
does (`restrict_writing`).  A thread under it cannot mount, so it holds only for the thread of the
cell that starts the command (`CommandStarter`), and for all that comes of it.

The view can be made before it is known what is to run in it, so that no command has to wait for it;
what is secret by then is hidden when the command comes.

A cell keeps the capabilities of its user namespace, for it has to mount.  A command never has one:
nothing that is started here can gain any (`forswear_capabilities`), and the cell cannot be looked
into nor signalled from within.  The filter lets the cell's own calls through because they carry a
number that no other process knows.

This file runs as a script and imports nothing of ours and as little as possible: it is what a
sandboxed command costs.  It takes orders from one socket, in packets of fields parted by NUL:

    cell ID      make a cell; with the descriptors of its configuration (`KeeperCellConfig` has
                 the fields) and of a socket of its own
    term ID      ask everything in it to end
    kill ID      end it

and says `ready` when it has started (`ready landlock` where the kernel has it), and `gone ID` of a
cell that ended.  Over its own socket a cell takes, in turns,

    plan         make a view; with the descriptor of a `KeeperMountPlan`.  Where it asks for a
                 network with a listener, the next thing said is `listens`
    join         take the view that another cell holds; with the descriptors of a
                 `KeeperJoinRequest` and of the two namespaces.  Without that of the network, and
                 with a port, the command has a network of its own with a listener, and the next
                 thing said is `listens`
    run          run a command in it; with the descriptors of a `KeeperExecRequest`, stdin, stdout
                 and stderr
    hold         make a view and keep it, for cells that join it; with the descriptors of a
                 `KeeperMountPlan` and of a lock, which is held as long as the view

and says

    ended  STATUS         as `waitpid` has it: negative for a signal
    listens               with the descriptor of a listener in the network of the view
    held                  with the descriptors of the project in the view, of its mount namespace,
                          and of its network namespace where it has one of its own
    failed ERRNO STAGE    the view could not be made, or the command did not start

The end of the keeper's socket is the end of the keeper and of every command; the end of a cell's,
of the cell.
"""

from __future__ import annotations

import _socket
import _thread
import ctypes
import os
import resource
import select
import struct
import sys

# `signal` and `array` would load `enum` and `collections`, and each process of the keeper would be
# half a megabyte larger.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

NUMBERS = {
    "x86_64": {"clone": 56, "unshare": 272, "setns": 308},
    "aarch64": {"clone": 220, "unshare": 97, "setns": 268},
}.get(os.uname().machine, {})
"""Calls for which the C library has no function, or one that does not serve."""
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
"""The same numbers on every processor."""
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
LANDLOCK_VERSION = 2
"""The first with a right to move files between folders, which nothing can without."""
WRITE, MOVE = 1 << 1, 1 << 13
"""What is restricted: opening a file for writing (WRITE_FILE), and moving one (REFER)."""
CLONE_FS = 0x00000200
CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND = 32, 4096
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 28, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
LOCKED_SECUREBITS = 0xEF
"""Being root gives no capabilities, nor does anything else, and none of this can be taken back."""
CAPABILITY_VERSION = 0x20080522
FILE_SIZE_FOR_READING = 1 << 20
IS_FOLDER, IS_FILE = 0o040000, 0o100000
"""Bits of a mode that no other kind of thing has, among those that can be hidden."""
MOST_PROCESSES = 4096
"""Processes and threads that all commands together may have at once."""
WAITING_CONNECTIONS = 128
"""That are not accepted yet."""
WHAT_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)

# `use_errno`: without it another C call between the failure and the question overwrites the number.
_libc = ctypes.CDLL(None, use_errno=True)


class KeeperFailure(Exception):
    """Something that was needed for the cell could not be had."""

    def __init__(self, stage: str, errno: int) -> None:
        super().__init__(stage)
        self.stage = stage
        self.errno = errno


def checked(result: int, stage: str) -> int:
    """The result of a C function, or why it failed."""
    if result < 0:
        raise KeeperFailure(stage, ctypes.get_errno())
    return result


def path_bytes(path: str) -> ctypes.c_char_p:
    """A path, or any text that is passed like one, for a C function."""
    return ctypes.c_char_p(os.fsencode(path))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount something; the stage that failed is named by what was to be mounted where."""
    result: int = _libc.mount(
        path_bytes(source),
        path_bytes(target),
        path_bytes(kind) if kind else None,
        ctypes.c_ulong(flags),
        path_bytes(options) if options else None,
    )
    checked(result, f"mount {kind or 'bind'} {target}")


def prctl(option: int, first: int = 0, address: int = 0) -> int:
    """Change something about this process."""
    unused = ctypes.c_ulong(0)
    result: int = _libc.prctl(
        ctypes.c_int(option), ctypes.c_ulong(first), ctypes.c_void_p(address), unused, unused
    )
    return result


# --- what is asked for ---------------------------------------------------------------------------


class MessageFields:
    """Fields of a message that was handed over, one after the other."""

    def __init__(self, message: int) -> None:
        data = b""
        # `pread`: the descriptor shares its position with the sender, who left it at the end.
        while chunk := os.pread(message, FILE_SIZE_FOR_READING, len(data)):
            data += chunk
        self._fields = iter(data.split(b"\0"))

    def one(self) -> str:
        """The next one."""
        return os.fsdecode(next(self._fields))

    def several(self) -> list[str]:
        """As many as the next one says."""
        return [self.one() for _ in range(int(self.one()))]


class KeeperCellConfig:
    """What holds for all commands of a cell."""

    def __init__(self, fields: MessageFields) -> None:
        self.environment = environment(fields.several())
        self.filter = bytes.fromhex(fields.one())
        self.password = int(fields.one())
        """What the filter knows the cell's own calls by."""


class KeeperMountPlan:
    """What a view of the disk is made of."""

    def __init__(self, fields: MessageFields) -> None:
        layers = fields.several()
        self.layers = list(zip(layers[0::3], layers[1::3], layers[2::3], strict=True))
        """Folder, upper layer and work folder of each project folder."""
        temporary = fields.several()
        self.temporary = list(zip(temporary[0::2], temporary[1::2], strict=True))
        """Folders that take the place of `/tmp` and the like: the real one, then where it is to be
        seen.
        """
        self.empty_file = fields.one()
        """What is seen in the place of a hidden file; its mode lets no one read it."""
        self.hidden = fields.several()
        """Files and folders."""
        self.pins = fields.several()
        """Folders whose content is seen before that of the first project folder."""
        network = fields.one()
        self.has_own_network = bool(network)
        """A network with nothing but a loopback, for this view alone."""
        self.port = int(network) if network.isdigit() else 0
        """Where a listener is opened in it, which is handed out; 0 for none."""


class KeeperJoinRequest:
    """What a command needs besides the view that it joins."""

    def __init__(self, fields: MessageFields) -> None:
        self.writable = fields.several()
        """Folders where it may open files for writing."""
        self.port = int(fields.one())
        """Where a listener is opened in a network of its own, which is handed out; 0 for none."""


class KeeperExecRequest:
    """A command."""

    def __init__(self, fields: MessageFields) -> None:
        self.cwd = fields.one()
        self.argv = fields.several()
        self.environment = environment(fields.several())
        """What it has besides the cell's."""
        self.hidden = fields.several()
        """What is to be hidden besides."""


def environment(entries: list[str]) -> dict[str, str]:
    """`NAME=value`, each."""
    return dict(entry.split("=", 1) for entry in entries)


# --- the cell ----------------------------------------------------------------------------------


class MountView:
    """The view of the disk that a command is to have."""

    def __init__(self, plan: KeeperMountPlan, password: int, *, is_run_in: bool = True) -> None:
        """`is_run_in` is false for a view that other cells join: no command starts from it."""
        self._held: list[int] = []
        try:
            self._build(plan)
        finally:
            # Whatever is held keeps the view from being taken apart; only what hides files is
            # needed once more.
            for fd in self._held[1:]:
                os.close(fd)
        folders = [folder for folder, _, _ in plan.layers]
        targets = [target for _, target in plan.temporary]
        writable = [*folders, *targets, "/dev"]
        self.starter = CommandStarter(writable, password) if is_run_in else None

    def _build(self, plan: KeeperMountPlan) -> None:
        # All that is mounted from somewhere is opened first: a mount may hide the place of the
        # next.
        self.empty = self._hold(plan.empty_file)
        temporary = [(self._hold(source), target) for source, target in plan.temporary]
        hiding = [target for _, target in temporary]
        pins = [plan.pins, *([] for _ in plan.layers)]
        overlays = [
            (layer[0], self._overlay(*layer, above))
            for layer, above in zip(plan.layers, pins, strict=False)
        ]
        for source, target in temporary:
            if not os.path.isdir(target):  # it lay in one of those that were just replaced
                os.makedirs(target)
            mount(source, target, "", MS_BIND)
        # Bubblewrap's `/dev` is read-only here, and POSIX shared memory needs a place.
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
        # After what would hide them: to mount one first, and move it, takes two more calls that
        # wait for every other mount and unmount of the machine.
        for folder, options in overlays:
            if is_below(folder, hiding):
                os.makedirs(folder, exist_ok=True)
            mount("overlay", folder, "overlay", MS_NOSUID | MS_NODEV, options)
        mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
        hide(plan.hidden, self.empty)

    def _hold(self, path: str) -> str:
        """A name for what is at `path` now, that goes on to mean it when the path is hidden."""
        self._held.append(os.open(path, os.O_PATH))
        return f"/proc/self/fd/{self._held[-1]}"

    def _overlay(self, folder: str, upper: str, work: str, pins: list[str]) -> str:
        """The options of the overlay of a folder, with `pins` between the two."""
        # By descriptor: a colon or a comma in a name would be read as the end of it.
        *between, lower, over, beside = (self._hold(path) for path in (*pins, folder, upper, work))
        below = ":".join([*between, lower])
        return f"lowerdir={below},upperdir={over},workdir={beside},userxattr"

    def close(self) -> None:
        """Hold nothing of it any more."""
        os.close(self._held[0])
        if self.starter is not None:
            self.starter.close()


class JoinedView:
    """The view that another cell holds, for one command: its own processes in `/proc`, and what is
    hidden from it alone.
    """

    empty = "/dev/null"
    """Bubblewrap's `/dev` is read-only, and a device cannot be opened where `hide` binds it.  The
    file that a view of its own binds lies in another namespace, from which nothing can be bound."""

    def __init__(self, wanted: KeeperJoinRequest, namespaces: list[int], password: int) -> None:
        # Without a network of its own the view has that of all cells.
        for fd, kind in zip(namespaces, (CLONE_NEWNS, CLONE_NEWNET), strict=False):
            own_call("setns", password, fd, kind)
        # A copy of the mounts: the overlay in it is the same one, never a second over its upper
        # layer, which the kernel would allow and then give no promise for.
        apart = CLONE_NEWNET if wanted.port else 0
        own_call("unshare", password, CLONE_NEWNS | CLONE_NEWIPC | apart)
        if wanted.port:
            raise_loopback()
        mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
        self.starter = CommandStarter(wanted.writable, password)

    def close(self) -> None:
        """Hold nothing of it any more."""
        self.starter.close()


def raise_loopback() -> None:
    """Switch the loopback of a new network on: without it a server cannot be reached by its own
    tests.
    """
    asked = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    request = ctypes.create_string_buffer(struct.pack("16sH22x", b"lo", IFF_UP), 40)
    try:
        number = ctypes.c_ulong(SIOCSIFFLAGS)
        checked(_libc.ioctl(ctypes.c_int(asked.fileno()), number, request), "loopback")
    finally:
        asked.close()


def opened_listener(port: int) -> _socket.socket:
    """A listener on the loopback of the network that this process is in.

    A socket stays in the network in which it was made, whichever process has it: what is accepted
    from it comes from in here, and from nowhere else.
    """
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(WAITING_CONNECTIONS)
    return listener


def own_call(name: str, password: int, *arguments: object) -> int:
    """A system call that the filter lets through for us alone: the password stands where the kernel
    does not look.
    """
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    given += [ctypes.c_long(0)] * (5 - len(given))
    number = ctypes.c_long(NUMBERS[name])
    return checked(_libc.syscall(number, *given, ctypes.c_ulong(password)), name)


def is_below(path: str, folders: list[str]) -> bool:
    """True when the path is one of the folders, or lies in one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def hide(paths: list[str], empty: str) -> None:
    """Let nothing be seen where secrets lie; `empty` stands in the place of a file."""
    for path in paths:
        try:
            # Followed through links on purpose: a bind mount lands on the target, which is what a
            # command would read.
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if mode & IS_FOLDER:
            mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "mode=0,size=4k")
        elif mode & IS_FILE:
            # Two calls: the kernel ignores MS_RDONLY in the call that makes a bind mount.
            mount(empty, path, "", MS_BIND)
            mount("none", path, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


# --- giving everything up ------------------------------------------------------------------------


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def forswear_capabilities() -> None:
    """Nothing that is started from here on can gain a capability or a privilege in any way.

    This process keeps what it has.
    """
    number = 0
    while prctl(PR_CAPBSET_DROP, number) == 0:
        number += 1
    if not number:
        raise KeeperFailure("drop capabilities", ctypes.get_errno())
    # The bounding set limits what an exec can gain; ambient and inheritable capabilities would pass
    # through one, so both are emptied as well.
    checked(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL), "clear ambient capabilities")
    checked(prctl(PR_SET_SECUREBITS, LOCKED_SECUREBITS), "lock capabilities")
    header = _CapabilityHeader(CAPABILITY_VERSION, 0)
    ours = (_Capabilities * 2)()
    checked(_libc.capget(ctypes.byref(header), ours), "look at capabilities")
    for half in ours:
        half.inheritable = 0
    checked(_libc.capset(ctypes.byref(header), ours), "hand down no capability")
    # From here on set-user-id programs and file capabilities have no effect.
    checked(prctl(PR_SET_NO_NEW_PRIVS, 1), "set no_new_privs")


def bound_processes() -> None:
    """Let all commands together have no more than so many processes; root is held to no such limit.

    Older kernels count the user's other programs, too, and so a limit would hit those.
    """
    major, minor = os.uname().release.split(".")[:2]
    if (int(major), int(minor)) < (5, 14):
        return
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    if most == resource.RLIM_INFINITY or most > MOST_PROCESSES:
        resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))


def install(filter_code: bytes) -> None:
    """Make no system call any more that a command has no use for."""
    if not filter_code:
        return
    # The kernel copies the program during the call, so the buffer may be freed afterwards.
    code = ctypes.create_string_buffer(filter_code, len(filter_code))
    program = _Program(len(filter_code) // 8, ctypes.addressof(code))
    result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))
    checked(result, "install the system call filter")


# --- writing nowhere else ------------------------------------------------------------------------


def has_landlock() -> bool:
    """True when this kernel has Landlock, switched on, with all that is used of it."""
    nothing, size = ctypes.c_void_p(0), ctypes.c_size_t(0)
    version: int = _libc.syscall(
        ctypes.c_long(LANDLOCK_CREATE_RULESET),
        nothing,
        size,
        ctypes.c_uint(LANDLOCK_CREATE_RULESET_VERSION),
    )
    return version >= LANDLOCK_VERSION


def restrict_writing(folders: list[str]) -> None:
    """Let this thread, and whatever it starts, open files for writing only below these folders.

    It is named pipes that this is about: they are as good as sockets for talking to a program
    outside.  Everything else is on a read-only mount anyway.
    """
    rules = landlock(LANDLOCK_CREATE_RULESET, struct.pack("QQQ", WRITE | MOVE, 0, 0), 24, 0)
    try:
        # Moving must be handled to be allowed at all: a ruleset that does not name it forbids every
        # rename between folders (REFER is denied by default).
        allow(rules, "/", MOVE)
        for folder in folders:
            allow(rules, folder, WRITE)
        landlock(LANDLOCK_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def allow(rules: int, folder: str, what: int) -> None:
    """Allow something below a folder."""
    fd = os.open(folder, os.O_PATH)
    try:
        landlock(LANDLOCK_ADD_RULE, rules, LANDLOCK_RULE_PATH_BENEATH, struct.pack("=Qi", what, fd))
    finally:
        os.close(fd)


def landlock(number: int, *arguments: int | bytes) -> int:
    """A call of Landlock; bytes are passed by their address."""
    given = [
        ctypes.c_long(each) if isinstance(each, int) else ctypes.c_char_p(each)
        for each in arguments
    ]
    given += [ctypes.c_long(0)] * (4 - len(given))
    return checked(_libc.syscall(ctypes.c_long(number), *given), "landlock")


class CommandStarter:
    """The thread that starts the command of a view, under Landlock.

    Landlock cannot be taken off a thread again, and its rules name folders of one view; so there is
    one thread for each view.  It is made with the view, ahead of the command: handing the command
    over takes 0.03 ms then.  To fork, and be restricted between fork and exec, takes 0.6 ms more.
    """

    def __init__(self, writable: list[str], password: int) -> None:
        """`writable` names all folders where the command may open files for writing."""
        self._asked, self._answered = _thread.allocate_lock(), _thread.allocate_lock()
        self._asked.acquire()
        self._answered.acquire()
        self._command: tuple[KeeperExecRequest, dict[str, str], list[int]] | None = None
        self._outcome: int | BaseException = 0
        _thread.start_new_thread(self._live, (writable, password))
        self._answer()

    def start(
        self, request: KeeperExecRequest, environment: dict[str, str], descriptors: list[int]
    ) -> int:
        """Start the command; returns its process, which is a child of the cell."""
        self._command = (request, environment, descriptors)
        self._asked.release()
        return self._answer()

    def close(self) -> None:
        """Let it end, now that what it started is over."""
        self._asked.release()

    def _answer(self) -> int:
        self._answered.acquire()
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome

    def _live(self, writable: list[str], password: int) -> None:
        try:
            # setns(2) moves no process to another mount namespace while a thread shares its root
            # and working directory (CLONE_FS); the cell has to get back to the keeper's.
            own_call("unshare", password, CLONE_FS)
            if has_landlock():
                restrict_writing(writable)
            self._answered.release()
            self._asked.acquire()
            if self._command is None:
                return
            self._outcome = start(*self._command)
            self._answered.release()
            # Not before the command is over: a process that asked to be killed when its parent ends
            # (PR_SET_PDEATHSIG) is killed when the thread does that started it.
            self._asked.acquire()
        except BaseException as error:
            self._outcome = error
            self._answered.release()


# --- the processes of a command ------------------------------------------------------------------


class CellInit:
    """The first process of a cell."""

    def __init__(self, config: KeeperCellConfig, control: _socket.socket, outside: int) -> None:
        self._config = config
        self._control = control
        self._outside = outside
        """The keeper's own view of the disk."""
        self._network = -1
        """The keeper's own network, while the cell is in another."""
        self._stays_apart = False
        """Each of its views has a network of its own.  The keeper's belongs to a user namespace
        above ours, so that no cell may go back to it."""
        self._view: MountView | JoinedView | None = None

    def live(self) -> None:
        """Do what is asked, one thing after the other, until the socket ends."""
        # Before anything else: if the keeper dies in between, this process must not outlive it.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # No process in the cell may look into the one that holds it (`/proc/PID/mem`, ptrace).
        prctl(PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGTERM, pass_on)
        install(self._config.filter)
        while True:
            verb, descriptors = receive(self._control)
            if not verb:
                return
            said = self._done(verb, descriptors)
            for fd in descriptors:
                os.close(fd)
            if said:
                self._control.send(said)
                self._take_apart()

    def _done(self, verb: bytes, descriptors: list[int]) -> bytes:
        """Do one thing; returns what there is to say."""
        try:
            if verb == b"plan":
                self._make(KeeperMountPlan(MessageFields(descriptors[0])))
                return b""
            if verb == b"join":
                wanted = KeeperJoinRequest(MessageFields(descriptors[0]))
                if len(descriptors) > 2:
                    self._network = os.open("/proc/self/ns/net", os.O_RDONLY)
                self._join(wanted, descriptors[1:])
                return b""
            if verb == b"hold":
                self._hold(KeeperMountPlan(MessageFields(descriptors[0])))
                # Kept for good: the lock is free when the last who has it open is gone, and the
                # view may outlive the process that asked for it by a moment.
                del descriptors[1:]
                return b""
            standard = descriptors[1:]
            del descriptors[1:]
            return b"ended\0%d" % self._run(
                KeeperExecRequest(MessageFields(descriptors[0])), standard
            )
        except KeeperFailure as failure:
            return b"failed\0%d\0%s" % (failure.errno, os.fsencode(failure.stage))
        except OSError as error:
            stage = str(error.filename or error)
            return b"failed\0%d\0%s" % (error.errno or 0, os.fsencode(stage))

    def _make(self, plan: KeeperMountPlan) -> None:
        flags = CLONE_NEWNS | CLONE_NEWIPC
        if plan.has_own_network:
            flags |= CLONE_NEWNET
            self._stays_apart = True
        elif self._stays_apart:
            raise KeeperFailure("no way back to the network of all cells", 0)
        own_call("unshare", self._config.password, flags)
        if plan.has_own_network:
            raise_loopback()
            self._hand_out_listener(plan.port)
        self._view = MountView(plan, self._config.password)

    def _join(self, wanted: KeeperJoinRequest, namespaces: list[int]) -> None:
        if self._stays_apart:
            raise KeeperFailure("no way back to the network of all cells", 0)
        self._stays_apart = bool(wanted.port)
        self._view = JoinedView(wanted, namespaces, self._config.password)
        if wanted.port:
            self._hand_out_listener(wanted.port)

    def _hand_out_listener(self, port: int) -> None:
        listener = opened_listener(port)
        rights = struct.pack("i", listener.fileno())
        self._control.sendmsg([b"listens"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        # Ours goes: a command must not inherit it, and the network ends with what is handed out.
        listener.close()

    def _hold(self, plan: KeeperMountPlan) -> None:
        flags = CLONE_NEWNS | CLONE_NEWIPC | (CLONE_NEWNET if plan.has_own_network else 0)
        own_call("unshare", self._config.password, flags)
        if plan.has_own_network:
            raise_loopback()
        self._view = MountView(plan, self._config.password, is_run_in=False)
        handed = [os.open(plan.layers[0][0], os.O_PATH | os.O_DIRECTORY)]
        # The machine's network is not handed out: its namespace belongs to a user namespace above
        # ours, and nobody here may enter it, not even one who is in it.
        kinds = ("mnt", "net") if plan.has_own_network else ("mnt",)
        handed += [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in kinds]
        packed = struct.pack(f"{len(handed)}i", *handed)
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)
        self._control.sendmsg([b"held"], [rights])
        for fd in handed:
            os.close(fd)

    def _run(self, request: KeeperExecRequest, descriptors: list[int]) -> int:
        if self._view is None or self._view.starter is None:
            raise KeeperFailure("no view", 0)
        try:
            hide(request.hidden, self._view.empty)
            command = self._view.starter.start(request, self._config.environment, descriptors)
        finally:
            # Not when all is over: the reader of the pipe waits until every copy of our end is
            # closed.
            for fd in descriptors:
                os.close(fd)
        code = wait_for(command)
        end_all()
        return code

    def _take_apart(self) -> None:
        """Go back to where the keeper is; the kernel drops a view that no process uses."""
        # A working folder in the view would keep its overlay mounted.
        os.chdir("/")
        if self._view is not None:
            self._view.close()
            self._view = None
        own_call("setns", self._config.password, self._outside, CLONE_NEWNS)
        if self._network >= 0:
            own_call("setns", self._config.password, self._network, CLONE_NEWNET)
            os.close(self._network)
            self._network = -1


def pass_on(number: int, frame: object) -> None:
    """Ask everything in the cell to end; this process is not meant."""
    try:  # noqa: SIM105 - loading contextlib would take longer than the rest of a start
        os.kill(-1, number)
    except ProcessLookupError:
        pass


def start(request: KeeperExecRequest, environment: dict[str, str], descriptors: list[int]) -> int:
    """Start the command in a session of its own."""
    try:
        os.chdir(request.cwd)
    except OSError as error:
        raise KeeperFailure("chdir", error.errno or 0) from error
    try:
        return os.posix_spawnp(
            request.argv[0],
            request.argv,
            {**environment, **request.environment},
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(descriptors)],
            setsid=True,
            setsigdef=WHAT_PYTHON_IGNORES,
        )
    except OSError as error:
        raise KeeperFailure("exec", error.errno or 0) from error


def wait_for(command: int) -> int:
    """How the command ended; others that end meanwhile are reaped."""
    while True:
        # This is process 1 of the cell: orphans of the command become its children, and unreaped
        # ones would count against the limit of processes.
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            return os.waitstatus_to_exitcode(status)


def end_all() -> None:
    """Kill and reap what the command left running, before what it wrote is read."""
    while True:
        try:
            # In a loop: -1 reaches every process of the namespace but ourselves, and one that is
            # just being forked may appear after the first round.
            os.kill(-1, signal.SIGKILL)
            os.waitpid(-1, 0)
        except (ProcessLookupError, ChildProcessError):
            return


# --- the keeper ----------------------------------------------------------------------------------


class HeldCell:
    """A cell, as the keeper knows it."""

    def __init__(self, name: bytes, pid: int) -> None:
        self.name = name
        self.handle = os.pidfd_open(pid)

    def signal(self, number: int) -> None:
        """Signal the process that holds it."""
        signal.pidfd_send_signal(self.handle, number)

    def reap(self) -> None:
        """It is gone, and everything in it."""
        os.waitid(os.P_PIDFD, self.handle, os.WEXITED)
        os.close(self.handle)


def make(name: bytes, descriptors: list[int], control: _socket.socket) -> HeldCell:
    """Make a cell."""
    config = KeeperCellConfig(MessageFields(descriptors[0]))
    outside = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    flags = CLONE_NEWPID | signal.SIGCHLD
    nothing = ctypes.c_void_p(0)
    # The raw call: `os.fork` makes no namespace, and after `unshare` every later child of the
    # keeper would land in the same one.
    pid = _libc.syscall(
        ctypes.c_long(NUMBERS["clone"]), ctypes.c_ulong(flags), nothing, nothing, nothing, nothing
    )
    if pid == 0:
        control.close()
        own = _socket.socket(fileno=descriptors[1])
        try:
            CellInit(config, own, outside).live()
        except BaseException as error:
            # The client that waits for this cell gets the reason with the end.
            own.send(b"failed\0000\0" + os.fsencode(repr(error)[:500]))
        finally:
            # Never return into the keeper's loop: this is a copy of it, with its sockets.
            os._exit(0)
    os.close(outside)
    return HeldCell(name, checked(pid, "clone"))


def serve(control: _socket.socket) -> None:
    """Do what is asked until the socket ends."""
    cells: dict[int, HeldCell] = {}
    poll = select.poll()
    poll.register(control.fileno(), select.POLLIN)
    control.send(b"ready\0landlock" if has_landlock() else b"ready\0")
    while True:
        for fd, _ in poll.poll():
            if fd != control.fileno():
                poll.unregister(fd)
                cell = cells.pop(fd)
                cell.reap()
                control.send(b"gone\0" + cell.name)
                continue
            packet, descriptors = receive(control)
            if not packet:
                return
            verb, name = packet.split(b"\0", 1)
            if verb != b"cell":
                number = signal.SIGTERM if verb == b"term" else signal.SIGKILL
                for cell in (each for each in cells.values() if each.name == name):
                    cell.signal(number)
            elif (made := made_cell(name, descriptors, control)) is not None:
                cells[made.handle] = made
                poll.register(made.handle, select.POLLIN)


def made_cell(name: bytes, descriptors: list[int], control: _socket.socket) -> HeldCell | None:
    """A new cell; None where it could not be made, which the client is told."""
    try:
        return make(name, descriptors, control)
    except KeeperFailure:
        control.send(b"gone\0" + name)
        return None
    finally:
        for each in descriptors:
            os.close(each)


def receive(control: _socket.socket) -> tuple[bytes, list[int]]:
    """One packet and the descriptors that came with it, which no command may inherit by
    accident.
    """
    size = struct.calcsize("i")
    packet, extra, _, _ = control.recvmsg(1024, _socket.CMSG_SPACE(4 * size))
    descriptors: list[int] = []
    for level, kind, data in extra:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            descriptors += struct.unpack_from(f"{len(data) // size}i", data)
    for fd in descriptors:
        # Descriptors arrive without CLOEXEC, and the next command would inherit them.
        os.set_inheritable(fd, False)
    return packet, descriptors


def main() -> None:
    """Serve on the socket whose number was given."""
    control = _socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    # A view of the disk that belongs to our own user namespace, so that cells may come back to it.
    # What bubblewrap mounted is locked in it: no capability of ours can make it writable.
    checked(_libc.unshare(CLONE_NEWNS), "unshare")
    bound_processes()
    forswear_capabilities()
    serve(control)


if __name__ == "__main__":
    main()
