import { parseJson } from '../../../core/json/json.ts';
import type { Message } from '../../../protocol/message.ts';
import type { MessagePool } from '../../../session/resting-history.ts';

const pageSize = 256 * 1024;
/** So many characters stay in the heap: a copy of a short session is gone before anything moves. */
const kept = 16 * 1024;
/** Before each message: one byte for its form, and four for its length in bytes. */
const headSize = 5;
/** A shorter text takes no more room in the heap than elsewhere. */
const shortest = 16;
/** V8 does not move longer ones. */
const longest = 64 * 1024;

/** The bits of a form. */
const wide = 1;
const json = 2;
const isWide = /[^\0-\xff]/;

/**
 * Messages in memory that V8 does not manage. Its collections, during which turns wait, move everything that is new in the
 * heap, and most of a copy is messages.
 */
export class OutsideHeap implements MessagePool {
  readonly #pages: Buffer[] = [];
  /** Where the next message goes in the last page. */
  #end = pageSize;
  #kept = 0;

  add(content: string | Message): number | undefined {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    if (text.length < shortest || text.length > longest) return undefined;
    if (this.#kept < kept) {
      this.#kept += text.length;
      return undefined;
    }
    const form = (isWide.test(text) ? wide : 0) + (typeof content === 'string' ? 0 : json);
    const size = text.length * (form & wide ? 2 : 1);
    if (this.#end + headSize + size > pageSize) {
      this.#pages.push(Buffer.allocUnsafeSlow(pageSize));
      this.#end = 0;
    }
    const page = this.#pages.at(-1) as Buffer;
    const at = this.#end;
    page[at] = form;
    page.writeUInt32LE(size, at + 1);
    page.write(text, at + headSize, size, encodingOf(form));
    this.#end += headSize + size;
    return (this.#pages.length - 1) * pageSize + at;
  }

  read(place: number): string | Message {
    const page = this.#pages[Math.floor(place / pageSize)] as Buffer;
    const at = place % pageSize;
    const form = page[at] as number;
    const start = at + headSize;
    const text = page.toString(encodingOf(form), start, start + page.readUInt32LE(at + 1));
    return form & json ? (parseJson(text, 'A message') as unknown as Message) : text;
  }
}

function encodingOf(form: number): 'utf16le' | 'latin1' {
  return form & wide ? 'utf16le' : 'latin1';
}
