"""The keeper: a small program inside the sandbox that starts each command in a box of its own.

It is started once, by bubblewrap, in a place where the whole disk is read-only, there is no network, and nothing outside can be seen or
signalled.  For each command it makes a fresh process namespace and a fresh view of the disk: the project under an overlay, a `/tmp`, a
`/proc` of the command's own, and nothing where secrets lie.  Then it gives up every capability for good, installs the system call filter
and starts the command.  A command ends when its first process ends; whatever it left running dies with the namespace.

This file runs as a script and imports nothing of ours and as little as possible: it is what a sandboxed command costs.  It speaks
over one socket, in packets of fields parted by NUL:

    in    run  ID          with the descriptors request, stdin, stdout, stderr     (`read_request` has the request's fields)
          term ID          ask everything in the command's box to end
          kill ID          end it
    out   ready
          ended  ID STATUS         as `waitpid` has it: negative for a signal
          failed ID ERRNO STAGE    it did not start

The end of the socket is the end of the keeper, and with it of every command.
"""

from __future__ import annotations

import _socket
import array
import ctypes
import os
import select
import signal
import sys

SYSCALLS = {
    "x86_64": {"clone": 56, "open_tree": 428, "move_mount": 429},
    "aarch64": {"clone": 220, "open_tree": 428, "move_mount": 429},
}
"""Calls for which the C library has no function, or one that does not serve."""
CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND = 32, 4096
AT_FDCWD = -100
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 4
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 28, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
LOCKED_SECUREBITS = 0xEF
"""Being root gives no capabilities, nor does anything else, and none of this can be taken back."""
CAPABILITY_VERSION = 0x20080522
FILE_SIZE_FOR_READING = 1 << 20
TOLD = 3
"""How the first process of a box exits when it has told how the command ended."""
WHAT_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)

_libc = ctypes.CDLL(None, use_errno=True)
_numbers = SYSCALLS.get(os.uname().machine, {})


class Failed(Exception):
    """Something that was needed for the box could not be had."""

    def __init__(self, stage: str, errno: int) -> None:
        super().__init__(stage)
        self.stage = stage
        self.errno = errno


def checked(result: int, stage: str) -> int:
    """The result of a C function, or why it failed."""
    if result < 0:
        raise Failed(stage, ctypes.get_errno())
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


# --- the request -------------------------------------------------------------------------------


class Request:
    """A command, and the box it wants."""

    def __init__(self, given: list[str]) -> None:
        fields = iter(given)

        def several() -> list[str]:
            return [next(fields) for _ in range(int(next(fields)))]

        self.cwd = next(fields)
        self.argv = several()
        self.environment = dict(entry.split("=", 1) for entry in several())
        layers = several()
        self.layers = list(zip(layers[0::3], layers[1::3], layers[2::3], strict=True))
        """Folder, upper layer and work folder of each project folder."""
        self.temporary = several()
        """Folders that take the place of `/tmp` and the like: the real one, then where it is to be seen."""
        self.hidden_folders = several()
        self.hidden_files = several()
        self.empty_file = next(fields)
        """What is seen in the place of a hidden file; nobody may read it."""
        self.filter = bytes.fromhex(next(fields))


def read_request(fd: int) -> Request:
    """The request in a file that was handed over."""
    data = b""
    while chunk := os.pread(fd, FILE_SIZE_FOR_READING, len(data)):
        data += chunk
    return Request([os.fsdecode(field) for field in data.split(b"\0")])


# --- the box -----------------------------------------------------------------------------------


def build(request: Request) -> None:
    """Make the view of the disk that the command is to have."""
    # All that is mounted from somewhere is opened first: a mount may hide the place of the next.
    empty = held(request.empty_file)
    temporary = [
        (held(source), target)
        for source, target in zip(request.temporary[0::2], request.temporary[1::2], strict=True)
    ]
    hiding = [target for _, target in temporary]
    attached = [
        attach_overlay(*layer, is_hidden=is_below(layer[0], hiding)) for layer in request.layers
    ]
    for source, target in temporary:
        if not os.path.isdir(target):  # it lay in one of those that were just replaced
            os.makedirs(target)
        mount(source, target, "", MS_BIND)
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    for (folder, _, _), fd in zip(request.layers, attached, strict=True):
        if fd >= 0:
            os.makedirs(folder, exist_ok=True)
            move_mount(fd, folder)
    mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for folder in request.hidden_folders:
        if os.path.isdir(folder):
            mount("tmpfs", folder, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "mode=0,size=4k")
    for file in request.hidden_files:
        if os.path.isfile(file):
            mount(empty, file, "", MS_BIND)
            mount("none", file, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def held(path: str) -> str:
    """A name for what is at `path` now, that goes on to mean it when the path is hidden; until the command starts."""
    return f"/proc/self/fd/{os.open(path, os.O_PATH)}"


def is_below(path: str, folders: list[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def attach_overlay(folder: str, upper: str, work: str, *, is_hidden: bool) -> int:
    """Lay the overlay over a folder; returns a hold on it when another mount is going to hide it, else -1."""
    # By descriptor: a colon or a comma in a name would be read as the end of it.
    options = f"lowerdir={held(folder)},upperdir={held(upper)},workdir={held(work)},userxattr"
    mount("overlay", folder, "overlay", MS_NOSUID | MS_NODEV, options)
    return open_tree(folder) if is_hidden else -1


def open_tree(path: str) -> int:
    """A hold on what is mounted at a path, without the path."""
    call = ctypes.c_long(_numbers["open_tree"])
    flags = OPEN_TREE_CLONE | os.O_CLOEXEC
    return checked(
        _libc.syscall(call, ctypes.c_int(AT_FDCWD), path_bytes(path), ctypes.c_uint(flags)),
        f"open_tree {path}",
    )


def move_mount(fd: int, target: str) -> None:
    """Let what is held be seen at a path."""
    call = ctypes.c_long(_numbers["move_mount"])
    result = _libc.syscall(
        call,
        ctypes.c_int(fd),
        ctypes.c_char_p(b""),
        ctypes.c_int(AT_FDCWD),
        path_bytes(target),
        ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH),
    )
    checked(result, f"move_mount {target}")


# --- giving everything up ------------------------------------------------------------------------


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def forswear_capabilities() -> None:
    """Nothing that is started from here on can gain a capability or a privilege in any way; this process keeps what it has."""
    number = 0
    while prctl(PR_CAPBSET_DROP, number) == 0:
        number += 1
    if not number:
        raise Failed("drop capabilities", ctypes.get_errno())
    checked(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL), "clear ambient capabilities")
    checked(prctl(PR_SET_SECUREBITS, LOCKED_SECUREBITS), "lock capabilities")
    checked(prctl(PR_SET_NO_NEW_PRIVS, 1), "set no_new_privs")


def give_up_everything(filter_code: bytes) -> None:
    """Hold no capability any more, and make no system call that a command has no use for."""
    header = _CapabilityHeader(CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    checked(_libc.capset(ctypes.byref(header), ctypes.byref(nothing)), "drop capabilities")
    if not filter_code:
        return
    code = ctypes.create_string_buffer(filter_code, len(filter_code))
    program = _Program(len(filter_code) // 8, ctypes.addressof(code))
    result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))
    checked(result, "install the system call filter")


# --- the processes of a command ------------------------------------------------------------------


def first_process(
    name: bytes, request: Request, descriptors: list[int], control: _socket.socket
) -> None:
    """The first process of a box: builds it, starts the command, reaps, and tells how it ended; never returns."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # Nobody in the box may look into the process that holds it.
        prctl(PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGTERM, pass_on)
        build(request)
        give_up_everything(request.filter)
        command = start(request, descriptors)
        for fd in descriptors:
            os.close(fd)
        code = wait_for(command)
        end_all()
        said = (b"ended", name, b"%d" % code)
    except Failed as failure:
        said = (b"failed", name, b"%d\0%s" % (failure.errno, os.fsencode(failure.stage)))
    except BaseException as error:
        said = (b"failed", name, b"0\0" + os.fsencode(repr(error)[:500]))
    # Told from here and not by the keeper once we are gone: taking the box apart takes as long as building it.
    control.send(b"\0".join(said))
    os._exit(TOLD)


def pass_on(number: int, frame: object) -> None:
    """Ask everything in the box to end; this process is not meant."""
    try:  # noqa: SIM105 - loading contextlib would take longer than the rest of a start
        os.kill(-1, number)
    except ProcessLookupError:
        pass


def start(request: Request, descriptors: list[int]) -> int:
    """Start the command in a session of its own."""
    try:
        os.chdir(request.cwd)
    except OSError as error:
        raise Failed("chdir", error.errno or 0) from error
    try:
        return os.posix_spawnp(
            request.argv[0],
            request.argv,
            request.environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(descriptors)],
            setsid=True,
            setsigdef=WHAT_PYTHON_IGNORES,
        )
    except OSError as error:
        raise Failed("exec", error.errno or 0) from error


def wait_for(command: int) -> int:
    """How the command ended; others that end meanwhile are reaped."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            return os.waitstatus_to_exitcode(status)


def end_all() -> None:
    """Kill and reap what the command left running, before anybody looks at what it wrote."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
            os.waitpid(-1, 0)
        except (ProcessLookupError, ChildProcessError):
            return


# --- the keeper ----------------------------------------------------------------------------------


class Box:
    """A command that runs."""

    def __init__(self, name: bytes, pid: int) -> None:
        self.name = name
        self.handle = os.pidfd_open(pid)

    def signal(self, number: int) -> None:
        """Signal the process that holds it."""
        signal.pidfd_send_signal(self.handle, number)

    def ended(self) -> bytes:
        """What is left to be said of its end, now that it is gone."""
        gone = os.waitid(os.P_PIDFD, self.handle, os.WEXITED)
        os.close(self.handle)
        if gone is not None and (gone.si_code, gone.si_status) == (os.CLD_EXITED, TOLD):
            return b""
        return b"\0".join((b"ended", self.name, b"-9"))


def run(name: bytes, descriptors: list[int], control: _socket.socket) -> Box:
    """Start a command in a box of its own."""
    request = read_request(descriptors[0])
    flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | signal.SIGCHLD
    nothing = ctypes.c_void_p(0)
    pid = _libc.syscall(
        ctypes.c_long(_numbers["clone"]), ctypes.c_ulong(flags), nothing, nothing, nothing, nothing
    )
    if pid == 0:
        first_process(name, request, descriptors[1:], control)
    return Box(name, checked(pid, "clone"))


def serve(control: _socket.socket) -> None:
    """Do what is asked until the socket ends."""
    boxes: dict[int, Box] = {}
    poll = select.poll()
    poll.register(control.fileno(), select.POLLIN)
    control.send(b"ready")
    while True:
        for fd, _ in poll.poll():
            if fd != control.fileno():
                poll.unregister(fd)
                if said := boxes.pop(fd).ended():
                    control.send(said)
                continue
            packet, descriptors = receive(control)
            if not packet:
                return
            verb, name = packet.split(b"\0", 1)
            if verb == b"run":
                try:
                    box = run(name, descriptors, control)
                    boxes[box.handle] = box
                    poll.register(box.handle, select.POLLIN)
                except Failed as failure:
                    said = b"%d\0%s" % (failure.errno, os.fsencode(failure.stage))
                    control.send(b"\0".join((b"failed", name, said)))
                finally:
                    for each in descriptors:
                        os.close(each)
            else:
                number = signal.SIGTERM if verb == b"term" else signal.SIGKILL
                for box in boxes.values():
                    if box.name == name:
                        box.signal(number)


def receive(control: _socket.socket) -> tuple[bytes, list[int]]:
    """One packet and the descriptors that came with it, which no command may inherit by accident."""
    size = array.array("i").itemsize
    packet, extra, _, _ = control.recvmsg(1024, _socket.CMSG_SPACE(4 * size))
    descriptors: array.array[int] = array.array("i")
    for level, kind, data in extra:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % size])
    for fd in descriptors:
        os.set_inheritable(fd, False)
    return packet, list(descriptors)


def main() -> None:
    """Serve on the socket whose number was given."""
    control = _socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    forswear_capabilities()
    serve(control)


if __name__ == "__main__":
    main()
