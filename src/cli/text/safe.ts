/**
 * Makes text safe for a terminal. Text of models, tools and users can contain control sequences that move the cursor, change
 * the title or paste into the shell. Only newlines and tabs are kept.
 */
export function safe(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this function removes them.
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => (character === '\r' ? '' : '\ufffd'),
  );
}

/** The beginning of a text on one line. */
export function oneLine(text: string, length = 60): string {
  const line = safe(text).replace(/\s+/g, ' ').trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

/** A value as JSON on one line, shortened. */
export function shortJson(value: unknown, length = 200): string {
  return oneLine(JSON.stringify(value) ?? '', length);
}
