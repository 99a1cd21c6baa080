"""File mentions: `@path` in a message, found, judged, read and checked in one place."""

from __future__ import annotations

import base64
import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.image_samples import REAL, picture, png
from tests.support.pdf_samples import pdf
from weft.errors import UsageError
from weft.messages import MAX_IMAGE_BYTES, PDF_TYPE, File, Image, Text
from weft.project.mentions import (
    LARGEST_TEXT,
    LARGEST_TOGETHER,
    MOST_FILES,
    MOST_NAMES,
    MentionReader,
    mentions_in,
)
from weft.redact import Redactor
from weft.tools.pictures import MAX_PIXELS
from weft.workspace.local import LocalWorkspace

pytestmark = pytest.mark.anyio

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


class Project:
    """A project beside a file that is none of its own."""

    def __init__(self, root: Path) -> None:
        self.path = root / "project"
        self.path.mkdir()
        self.outside = root / "outside.txt"
        self.outside.write_text("OUTSIDE")
        self.asked: list[str] = []
        self.answer: bool | None = None
        """What the user answers; None where there is no user to ask."""

    def write(self, name: str, content: str | bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def reader(self, added: Iterable[str] = ()) -> MentionReader:
        async def ask(path: str) -> bool:
            self.asked.append(path)
            return bool(self.answer)

        return MentionReader(
            LocalWorkspace(str(self.path), added),
            home=str(self.path.parent),
            redact=Redactor({}),
            ask=None if self.answer is None else ask,
        )

    async def attached(self, *words: str) -> tuple[Text | Image | File, ...]:
        return await self.reader().attached(words)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# --- finding -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("look at @src/a.py", ("src/a.py",)),
        ("@a and @b and @a", ("a", "b")),
        ('see @"my notes.md" now', ("my notes.md",)),
        ("write to me@example.org", ()),
        ("(@a), [@b]", ("a", "b")),
        ("is it @a.py?", ("a.py?",)),
        ("@", ()),
        ("@@a", ()),
    ],
)
def test_names_are_found_where_a_user_means_them(text: str, names: tuple[str, ...]) -> None:
    assert mentions_in(text) == names


@given(st.text())
def test_finding_names_takes_any_text(text: str) -> None:
    names = mentions_in(text)
    assert len(set(names)) == len(names)
    assert all(name in text for name in names)


async def test_files_of_the_project_are_attached_once_each(project: Project) -> None:
    project.write("a.py", "AAA\r\n")
    project.write("b c.py", "BBB")
    project.write("src/d.py", "DDD")
    prompt = 'Compare @a.py, @"b c.py" and @./a.py. See @src/../src/d.py? Mail me@a.py.'
    assert await project.attached(prompt) == (
        File(name="a.py", text="AAA\r\n"),
        File(name="b c.py", text="BBB"),
        File(name="src/d.py", text="DDD"),
    )


async def test_a_word_that_is_a_whole_mention_may_hold_spaces(project: Project) -> None:
    project.write("my notes.md", "NOTES")
    project.write("a.py", "AAA")
    assert await project.attached("@my notes.md") == (File(name="my notes.md", text="NOTES"),)
    assert await project.attached("@a.py and more") == (File(name="a.py", text="AAA"),)


@pytest.mark.parametrize(
    "text",
    [
        "ask @alice",
        "@alice",
        "npm i @types/node",
        "import x from '@/components/x.vue'",
        "see @nope.txt for more",
        'NSString *s = @"hello world";',
        "decorators start with @. Or @/ or @./ or @../..",
        "@a\0b",
        "@\udcff.txt is odd",
        "@" + "x" * 5000,
        "@" + "a/" * 200_000 + " is no path",
        "see @~nobody/file",
    ],
)
async def test_what_names_no_file_stays_text(project: Project, text: str) -> None:
    project.answer = True
    assert await project.attached(text) == ()
    assert project.asked == []


@pytest.mark.parametrize("word", ["@nope.txt", "@src/nope", "@/nowhere/nope", "@./nope", "@~/nope"])
async def test_a_lone_path_that_is_missing_is_named_in_a_sentence(
    project: Project, word: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(f"there is no file {word[1:]!r}")):
        await project.attached("Look", word)


@pytest.mark.parametrize(
    ("text", "missed"),
    [
        ("see @nope.txt for more", ("nope.txt",)),
        ("is it @src/nope, or @./nope.md?", ("src/nope", "./nope.md")),
        ("see @nope.py:1-2 and @a.py", ("nope.py:1-2",)),
        ("@nope.txt says it", ("nope.txt",)),
        ("ask @alice and me@example.org", ()),
        ("npm i @types/node", ()),
        ("import x from '@/components/x.vue'", ()),
        ("what is @app.get('/') here?", ()),
        ("why does it fail?\n  @functools.cache\ndef f(): ...", ()),
        ("@. or @/ or @~", ()),
    ],
)
async def test_a_path_of_no_file_among_words_is_named_and_a_handle_is_not(
    project: Project, text: str, missed: tuple[str, ...]
) -> None:
    project.write("src/a.py", "AAA")
    project.write("a.py", "AAA")
    told: list[tuple[str, ...]] = []
    await project.reader().attached([text], missing=told.append)
    assert told == ([missed] if missed else [])


@pytest.mark.parametrize(
    ("text", "name", "content"),
    [
        ("see @a.py:1-2", "a.py (lines 1-2)", "one\ntwo\n"),
        ("is it @a.py:2?", "a.py (line 2)", "two\n"),
        ("@a.py:3-99", "a.py (lines 3-4)", "three\nfour\n"),
        ("@odd:1 is a name", "odd:1", "ODD"),
        ("@a.py: what is it", "a.py", "one\ntwo\nthree\nfour\n"),
    ],
)
async def test_lines_of_a_file_are_attached_with_their_numbers(
    project: Project, text: str, name: str, content: str
) -> None:
    project.write("a.py", "one\ntwo\nthree\nfour\n")
    project.write("odd:1", "ODD")
    assert await project.attached(text) == (File(name=name, text=content),)


@pytest.mark.parametrize("asked", ["5-9", "0", "3-2"])
async def test_lines_that_a_file_has_not_are_refused_in_a_sentence(
    project: Project, asked: str
) -> None:
    project.write("a.py", "one\ntwo\nthree\nfour\n")
    with pytest.raises(UsageError, match=rf"^'a.py' has lines 1-4, not {asked}; nothing was sent"):
        await project.attached(f"see @a.py:{asked}")


async def test_several_parts_of_a_file_outside_are_asked_about_once(project: Project) -> None:
    project.outside.write_text("one\ntwo\n")
    project.answer = True
    path = str(project.outside)
    found = await project.attached(f"compare @{path}:1 with @{path}:2")
    assert found == (
        File(name=f"{path} (line 1)", text="one\n"),
        File(name=f"{path} (line 2)", text="two\n"),
    )
    assert project.asked == [path]


async def test_a_cut_does_not_uncover_a_key_of_several_lines(project: Project) -> None:
    body = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj" + "A" * 24] * 6)
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
    project.write("key.pem", key)
    with pytest.raises(UsageError, match="a secret in it covers several"):
        await project.attached("see @key.pem:3-4")


async def test_a_dangling_link_is_a_missing_file(project: Project) -> None:
    (project.path / "gone.md").symlink_to("nowhere")
    assert await project.attached("see @gone.md there") == ()
    with pytest.raises(UsageError, match=r"there is no file 'gone\.md'"):
        await project.attached("@gone.md")


async def test_a_text_with_endless_names_is_looked_at_only_so_far(project: Project) -> None:
    project.write("last", "LAST")
    text = " ".join(f"@n{number}" for number in range(MOST_NAMES))
    assert await project.attached(f"{text} @last") == ()
    assert await project.attached(f"@last {text}") == (File(name="last", text="LAST"),)


# --- outside -------------------------------------------------------------------------------


def ways_out(project: Project) -> dict[str, str]:
    """Every way to name the file outside."""
    (project.path / "link").symlink_to(project.outside)
    (project.path / "relative").symlink_to("../outside.txt")
    (project.path / "folder").symlink_to("..")
    (project.path / "chain").symlink_to("link")
    return {
        "absolute": f"@{project.outside}",
        "dots": "@../outside.txt",
        "home": "@~/outside.txt",
        "link": "@link",
        "relative link": "@relative",
        "folder link": "@folder/outside.txt",
        "chain": "@chain",
        "quoted": f'see @"{project.outside}" please',
        "sentence": f"What is in @{project.outside}?",
    }


WAYS_OUT = (
    *("absolute", "dots", "home", "link", "relative link", "folder link", "chain", "quoted"),
    "sentence",
)


@pytest.mark.parametrize("way", WAYS_OUT)
async def test_a_file_outside_is_asked_about_by_its_real_path(project: Project, way: str) -> None:
    project.answer = True
    said = ways_out(project)[way]
    assert await project.attached(said) == (File(name=str(project.outside), text="OUTSIDE"),)
    assert project.asked == [str(project.outside)]


@pytest.mark.parametrize("way", WAYS_OUT)
async def test_a_no_sends_nothing(project: Project, way: str) -> None:
    project.answer = False
    with pytest.raises(UsageError, match="was not allowed"):
        await project.attached(ways_out(project)[way])


@pytest.mark.parametrize("way", WAYS_OUT)
async def test_without_a_user_it_is_refused_and_the_sentence_names_add_dir(
    project: Project, way: str
) -> None:
    with pytest.raises(UsageError) as refused:
        await project.attached(ways_out(project)[way])
    assert str(project.outside) in str(refused.value)
    assert f"--add-dir {project.outside.parent}" in str(refused.value)
    assert "OUTSIDE" not in str(refused.value)


@pytest.mark.parametrize("way", WAYS_OUT)
async def test_a_folder_that_was_added_is_not_outside(project: Project, way: str) -> None:
    reader = project.reader([str(project.outside.parent)])
    (found,) = await reader.attached([ways_out(project)[way]])
    assert isinstance(found, File)
    assert found.text == "OUTSIDE"


async def test_a_folder_whose_name_only_begins_alike_is_outside(project: Project) -> None:
    beside = project.path.parent / "project_evil"
    beside.mkdir()
    (beside / "a.txt").write_text("EVIL")
    with pytest.raises(UsageError, match="--add-dir"):
        await project.attached(f"@{beside}/a.txt")


async def test_the_file_that_was_allowed_is_the_one_that_is_read(project: Project) -> None:
    """Between the question and the answer, another process puts a link in its place."""
    secret = project.outside.parent / "secret"
    secret.write_text("SECRET")

    async def ask(path: str) -> bool:
        project.outside.unlink()
        project.outside.symlink_to(secret)
        return True

    reader = MentionReader(LocalWorkspace(str(project.path)), redact=Redactor(), ask=ask)
    with pytest.raises(UsageError, match="changed"):
        await reader.attached([f"@{project.outside}"])


# --- what is read --------------------------------------------------------------------------


async def test_secrets_are_masked(project: Project) -> None:
    project.write("key", f"key = {KEY}\n")
    project.outside.write_text(KEY)
    project.answer = True
    assert KEY not in str(await project.attached("@key", f"@{project.outside}"))


@pytest.mark.parametrize(
    ("data", "media_type"), [(picture(kind), media_type) for kind, media_type in REAL.items()]
)
async def test_an_image_is_known_by_its_content_and_not_by_its_name(
    project: Project, data: bytes, media_type: str
) -> None:
    project.write("image.txt", data)
    (found,) = await project.attached("see @image.txt!")
    assert found == Image(
        media_type=media_type, data=base64.b64encode(data).decode(), name="image.txt"
    )
    project.write("text.png", "plain text")
    assert await project.attached("@text.png") == (File(name="text.png", text="plain text"),)


def make_special(project: Project, kind: str) -> str:
    """Something that cannot be attached; returns its name."""
    path = project.path / kind
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(str(path))
            listening.close()
        case "loop":
            path.symlink_to("loop")
        case "binary":
            path.write_bytes(b"\0\1\2" * 50)
        case "damaged.png":
            path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
        case "wide.png":
            path.write_bytes(png(MAX_PIXELS, 2))
        case "half.png":
            path.write_bytes(picture(width=300, height=200, noisy=True)[:5_000])
        case "long.txt":
            path.write_bytes(b"a" * (LARGEST_TEXT + 1))
        case "sparse":
            with path.open("wb") as file:
                file.truncate(1 << 40)
    return kind


SPECIAL = {
    "pipe": "is a named pipe, not a regular file",
    "socket": "is a socket, not a regular file",
    "loop": "is a symbolic link that cannot be followed",
    "binary": "is neither text nor an image that models take (PNG, JPEG, GIF and WebP)",
    "damaged.png": "is neither text nor an image",
    "wide.png": f"at most {MAX_PIXELS:,} pixels are taken",
    "half.png": "is a damaged image",
    "long.txt": "is larger than 1 MB",
    "sparse": "is larger than 1 MB",
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("said", ["@{}", "Please look at @{}."])
async def test_what_cannot_be_attached_is_refused_in_a_sentence(
    project: Project, kind: str, said: str
) -> None:
    name = make_special(project, kind)
    with pytest.raises(UsageError) as refused:
        await project.attached(said.format(name))
    assert f"{name!r} " in str(refused.value)
    assert SPECIAL[kind] in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/tty"])
async def test_a_device_is_never_opened(project: Project, device: str) -> None:
    project.answer = True
    with pytest.raises(UsageError, match=f"'{device}' is a device, not a regular file"):
        await project.attached(f"@{device}")


async def test_a_file_that_may_not_be_read_is_named(project: Project) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    project.write("closed", "x")
    (project.path / "closed").chmod(0)
    with pytest.raises(UsageError, match="does not allow access to 'closed'"):
        await project.attached("@closed")


@pytest.mark.parametrize("said", ["@src", "look at @src/ please", "is it in @src?"])
async def test_a_folder_is_named_to_the_model_and_nothing_of_it_is_read(
    project: Project, said: str
) -> None:
    """It stays a pointer: `@src` in a sentence is how users say where to look."""
    project.write("src/a.py", "AAA")
    (note,) = await project.attached(said)
    assert note == Text(
        text="\n[src is a folder, so nothing of it is attached; list it with your tools.]"
    )


async def test_a_message_takes_only_so_many_files_and_only_so_much(project: Project) -> None:
    for number in range(MOST_FILES + 1):
        project.write(f"f{number}", "x")
    words = [f"@f{number}" for number in range(MOST_FILES + 1)]
    assert len(await project.attached(*words[1:])) == MOST_FILES
    with pytest.raises(UsageError, match=f"at most {MOST_FILES} files"):
        await project.attached(*words)
    for number in range(LARGEST_TOGETHER // LARGEST_TEXT + 1):
        project.write(f"f{number}", b"a" * LARGEST_TEXT)
    with pytest.raises(UsageError, match="at most 10 MB"):
        await project.attached(*words[: LARGEST_TOGETHER // LARGEST_TEXT + 1])


# --- images that the user picked -----------------------------------------------------------


async def test_an_image_that_the_user_picked_may_lie_anywhere(project: Project) -> None:
    picked = project.outside.with_name("shot")
    picked.write_bytes(picture())
    (project.path / "link").symlink_to(picked)
    for path in (picked, project.path / "link"):
        (found,) = await project.reader().images([str(path)])
        assert (found.media_type, found.name) == ("image/png", path.name)
    assert project.asked == []


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        *((kind, told) for kind, told in SPECIAL.items() if kind not in ("binary", "damaged.png")),
        ("binary", "is not an image that models take; those are PNG, JPEG, GIF and WebP"),
        ("text.png", "is not an image that models take"),
        ("src", "is a folder"),
        ("nope.png", "there is no file"),
    ],
)
async def test_what_is_no_image_is_refused_in_a_sentence(
    project: Project, kind: str, told: str
) -> None:
    if kind in ("long.txt", "sparse"):
        told = "is not an image that models take"
    project.write("text.png", "plain")
    project.write("src/a", "x")
    path = str(project.path / make_special(project, kind))
    with pytest.raises(UsageError, match=re.escape(told)) as refused:
        await project.reader().images([path])
    assert repr(path) in str(refused.value)


@pytest.mark.parametrize("way", ["mention", "picked"])
async def test_a_photo_that_is_too_large_is_shrunk(project: Project, way: str) -> None:
    photo = project.path / "photo.png"
    photo.write_bytes(picture(width=1_500, height=1_000, noisy=True))
    assert photo.stat().st_size > MAX_IMAGE_BYTES
    reader = project.reader()
    found = await (reader.named(["photo.png"]) if way == "mention" else reader.images([str(photo)]))
    (image,) = found
    assert isinstance(image, Image)
    assert image.media_type == "image/jpeg"
    assert len(base64.b64decode(image.data)) <= MAX_IMAGE_BYTES


# --- PDFs ----------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("way", ["mention", "picked"])
async def test_a_pdf_is_attached_as_itself_and_as_its_text(project: Project, way: str) -> None:
    content = pdf("Hello")
    project.write("paper.pdf", content)
    reader = project.reader()
    path = str(project.path / "paper.pdf")
    found = await (reader.attached(["@paper.pdf"]) if way == "mention" else reader.images([path]))
    document, text = found
    assert isinstance(document, Image)
    assert isinstance(text, File)
    assert (document.media_type, document.pages, document.text_beside) == (PDF_TYPE, 1, True)
    assert base64.b64decode(document.data) == content
    assert (text.name, text.media_type) == (document.name, PDF_TYPE)
    assert "Hello" in text.text


@pytest.mark.process
@pytest.mark.parametrize("way", ["mention", "picked"])
async def test_a_pdf_with_a_secret_is_only_its_masked_text(project: Project, way: str) -> None:
    project.write("paper.pdf", pdf(f"Hello {KEY}"))
    reader = project.reader()
    path = str(project.path / "paper.pdf")
    found = await (reader.attached(["@paper.pdf"]) if way == "mention" else reader.images([path]))
    (text,) = found
    assert isinstance(text, File)
    assert "Hello" in text.text
    assert KEY not in text.text
    # Beside a document of the same name, which is sent as it is, this text must stay.
    assert text.media_type == "text/plain"


@pytest.mark.process
@pytest.mark.parametrize("way", ["mention", "picked"])
async def test_a_broken_pdf_is_refused_before_anything_is_sent(project: Project, way: str) -> None:
    project.write("paper.pdf", b"%PDF-1.7\nnothing")
    path = str(project.path / "paper.pdf")
    reader = project.reader()
    with pytest.raises(UsageError, match=r"cannot be read as a PDF \(broken: .*nothing was sent"):
        await (reader.attached(["@paper.pdf"]) if way == "mention" else reader.images([path]))
