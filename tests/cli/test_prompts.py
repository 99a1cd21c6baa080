"""What is said to the model: words, files, pictures."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from weft.cli.prompt_input import MAX_BYTES, compose, mentioned
from weft.errors import UsageError
from weft.messages import File, Image, Text


def test_words_are_joined_and_what_is_piped_in_comes_behind(tmp_path: Path) -> None:
    said = compose(["Explain", "this"], piped="line 1\nline 2\n", folder=str(tmp_path))
    assert said == (Text(text="Explain this\n\nline 1\nline 2\n"),)
    assert compose([], piped="only this", folder=str(tmp_path)) == (Text(text="only this"),)
    assert compose(["", " "], piped="\n", folder=str(tmp_path)) == ()


def test_a_file_word_is_sent_along_and_taken_out_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("caf\u00e9\r\n")
    said = compose(["Look", "@a b.txt"], folder=str(tmp_path))
    assert said == (Text(text="Look"), File(name="a b.txt", text="caf\u00e9\r\n"))


def test_a_mention_sends_the_file_and_leaves_the_text_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "b c.py").write_text("y = 2")
    prompt = 'Compare @a.py, and @"b c.py". Ask @alice or mail me@a.py.'
    said = compose([prompt], folder=str(tmp_path))
    assert said == (
        Text(text=prompt),
        File(name="a.py", text="x = 1"),
        File(name="b c.py", text="y = 2"),
    )


def test_a_file_is_named_once_however_often_it_is_mentioned(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    assert mentioned("@a.py and @a.py and @./a.py?", str(tmp_path)) == ["a.py", "./a.py"]
    assert mentioned("@@a.py x@a.py /@a.py", str(tmp_path)) == []


def test_a_picture_is_sent_as_a_picture(tmp_path: Path) -> None:
    (tmp_path / "p.PNG").write_bytes(b"\x89PNG")
    data = base64.b64encode(b"\x89PNG").decode()
    picture = Image(media_type="image/png", data=data, name="p.PNG")
    assert compose(["@p.PNG"], folder=str(tmp_path)) == (picture,)
    assert compose([], images=[str(tmp_path / "p.PNG")]) == (picture,)


@pytest.mark.parametrize(
    ("words", "images", "told"),
    [
        (["@nope.txt"], [], "there is no file 'nope.txt'"),
        (["\udcff"], [], "not text"),
        (["@bytes.bin"], [], "is not text"),
        (["@nul.txt"], [], "NUL"),
        (["@large.txt"], [], "larger than 10 MB"),
        ([], ["nul.txt"], "no picture"),
        ([], ["nope.png"], "cannot read 'nope.png'"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_a_sentence(
    tmp_path: Path, words: list[str], images: list[str], told: str
) -> None:
    (tmp_path / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "nul.txt").write_bytes(b"a\0b")
    (tmp_path / "large.txt").write_bytes(b"a" * (MAX_BYTES + 1))
    with pytest.raises(UsageError, match=re.escape(told)):
        compose(words, images=images, folder=str(tmp_path))


def test_many_files_together_have_the_same_limit(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_bytes(b"a" * (MAX_BYTES // 2))
    with pytest.raises(UsageError, match="larger than 10 MB"):
        compose([f"@{number}.txt" for number in range(3)], folder=str(tmp_path))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert compose(["look at @src please"], folder=str(tmp_path)) == (
        Text(text="look at @src please"),
    )


@pytest.mark.parametrize("said", ["@notes.md", "Look at @notes.md, please", "@folder/outside"])
def test_a_file_of_the_project_that_is_a_link_out_of_it_is_not_sent(
    tmp_path: Path, said: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside").write_text("secret")
    (project / "notes.md").symlink_to("../outside")
    (project / "folder").symlink_to("..")
    with pytest.raises(UsageError, match="leads out of the project by a symbolic link"):
        compose([said], folder=str(project))
    named = compose([f"@{tmp_path}/outside"], folder=str(project))
    assert named == (File(name=f"{tmp_path}/outside", text="secret"),), "by its own path it is"


def test_a_link_inside_the_repository_is_followed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "shared").write_text("ours")
    (project / "notes.md").symlink_to("../shared")
    assert compose(["@notes.md"], folder=str(project)) == (File(name="notes.md", text="ours"),)
