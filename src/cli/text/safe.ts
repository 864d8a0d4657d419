/**
 * Text for a terminal: what a model, a tool or a user wrote may hold control sequences that would move the cursor, change
 * the title or paste into the shell. Only line ends and tabs stay.
 */
export function safe(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what this is about.
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => (character === '\r' ? '' : '\ufffd'),
  );
}

/** The beginning of a text on one line. */
export function oneLine(text: string, length = 60): string {
  const line = safe(text).replace(/\s+/g, ' ').trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

/** A value as JSON on one line, cut where it is long. */
export function shortJson(value: unknown, length = 200): string {
  return oneLine(JSON.stringify(value) ?? '', length);
}
