/** One event of an SSE stream, as the standard dispatches it. */
export interface SseMessage {
  /** `message` where the stream names none. */
  readonly event: string;
  readonly data: string;
  /** The last id the stream gave, in this event or before it. */
  readonly id?: string;
}

/**
 * A parser for `text/event-stream` (WHATWG HTML, 9.2.6). What a stream ends with and no blank line completes is
 * dropped, so a line that is cut in the middle of an event never yields half of it.
 */
export function createSseParser() {
  const lines = createLineSplitter();
  let event = '';
  let data: string[] = [];
  let id: string | undefined;

  const readField = (line: string): void => {
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value;
    else if (field === 'id' && !value.includes('\0')) id = value;
  };

  const dispatch = (): SseMessage | undefined => {
    const message = { event: event || 'message', data: data.join('\n') };
    event = '';
    data = [];
    if (message.data === '') return undefined;
    return id === undefined ? message : { ...message, id };
  };

  return {
    /** The events that this piece completes. */
    push(bytes: Uint8Array): readonly SseMessage[] {
      const messages: SseMessage[] = [];
      for (const line of lines(bytes)) {
        if (line !== '') readField(line);
        else {
          const message = dispatch();
          if (message) messages.push(message);
        }
      }
      return messages;
    },
  };
}

/** Splits bytes into lines ended by CR, LF or CRLF; in time proportional to the bytes, also for one very long line. */
function createLineSplitter(): (bytes: Uint8Array) => readonly string[] {
  // Streaming: a character whose bytes lie in two pieces is held back. A leading byte order mark is dropped.
  const decoder = new TextDecoder();
  // The pieces of a line that has not ended yet; joined once, when it has.
  let open: string[] = [];
  let endedWithReturn = false;

  return (bytes) => {
    const text = decoder.decode(bytes, { stream: true });
    if (text === '') return [];
    const lines: string[] = [];
    // The second half of a CRLF whose first half ended the piece before.
    let start = endedWithReturn && text[0] === '\n' ? 1 : 0;
    for (const ending of text.matchAll(/\r\n|\r|\n/g)) {
      if (ending.index < start) continue;
      open.push(text.slice(start, ending.index));
      lines.push(open.length === 1 ? (open[0] ?? '') : open.join(''));
      open = [];
      start = ending.index + ending[0].length;
    }
    if (start < text.length) open.push(text.slice(start));
    endedWithReturn = text.endsWith('\r');
    return lines;
  };
}
