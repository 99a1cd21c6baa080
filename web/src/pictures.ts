/** Pictures that go with a message: pasted, dropped or chosen, kept until it is accepted. */

import { signal } from "@preact/signals";
import { say } from "./store.ts";

export interface Picture { name: string; type: string; data: string; address: string }

const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];
const MOST_BYTES = 10 * 1024 * 1024;

/** By session: what is not sent yet. */
export const pictures = signal<Readonly<Record<string, Picture[]>>>({});

export function picturesOf(session: string): Picture[] {
  return pictures.value[session] ?? [];
}

export function setPictures(session: string, list: Picture[]): void {
  pictures.value = { ...pictures.value, [session]: list };
}

export async function addPictures(session: string, files: Iterable<File>): Promise<void> {
  for (const file of files) {
    if (!TYPES.includes(file.type)) { say("warn", `${file.name || "This"} is neither a picture nor a PDF; name files of the project with @.`); continue; }
    if (file.size > MOST_BYTES) { say("warn", `${file.name} is larger than 10 MB.`); continue; }
    const data = await base64(file);
    const name = file.name || `pasted.${file.type.split("/")[1]}`;
    setPictures(session, [...picturesOf(session), { name, type: file.type, data, address: URL.createObjectURL(file) }]);
  }
}

export function removePicture(session: string, picture: Picture): void {
  URL.revokeObjectURL(picture.address);
  setPictures(session, picturesOf(session).filter((each) => each !== picture));
}

async function base64(file: Blob): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** The files of a paste or a drop; nothing where it is text. */
export function filesIn(data: DataTransfer | null): File[] {
  return [...(data?.files ?? [])];
}
