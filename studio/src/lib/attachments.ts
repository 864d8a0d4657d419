import { bytes } from './format.ts';

/** A file to be sent along with a message. */
export interface Attachment {
  readonly name: string;
  readonly contentType: string;
  /** Its content, as a data URL. */
  readonly url: string;
  readonly size: number;
}

/** A server takes 8 MiB a request by default, and base64 makes three bytes four. */
const maxBytes = 5_000_000;

/** Reads files; says which ones do not fit any more. */
export async function readAttachments(
  files: Iterable<File>,
  already: readonly Attachment[],
): Promise<{ readonly added: readonly Attachment[]; readonly fault?: string }> {
  let room = maxBytes - already.reduce((sum, { size }) => sum + size, 0);
  const added: Attachment[] = [];
  const refused: string[] = [];
  for (const file of files) {
    if (file.size > room) {
      refused.push(`${file.name} (${bytes(file.size)})`);
      continue;
    }
    room -= file.size;
    const contentType = file.type || 'application/octet-stream';
    added.push({ name: file.name, contentType, size: file.size, url: await dataUrl(file) });
  }
  if (refused.length === 0) return { added };
  const fault = `${refused.join(', ')}: too large. The files of a message may have ${bytes(maxBytes)} in total.`;
  return { added, fault };
}

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}
