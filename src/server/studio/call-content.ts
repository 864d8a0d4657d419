/** The largest recorded model call, in characters of JSON. */
const maxContentLength = 1_000_000;

/** In a call that is too large, longer texts are cut. */
const maxTextLength = 4_000;

/** In a call that is still too large, only the last messages are kept. */
const maxMessages = 50;

/**
 * What a model call sent and received, as JSON of a bounded size. The values of HTTP headers are left out: they may be
 * credentials.
 */
export function toContentJson(content: unknown): string | undefined {
  const whole = toText(content);
  if (whole === undefined || whole.length <= maxContentLength) return whole;
  const cut = toText(content, cutText);
  if (cut === undefined || cut.length <= maxContentLength) return cut;
  const short = toText(withLastMessages(content), cutText);
  return short !== undefined && short.length <= maxContentLength ? short : undefined;
}

function toText(content: unknown, change = (value: unknown) => value): string | undefined {
  try {
    return JSON.stringify(content, (key, value) =>
      key === 'headers' && isRecord(value) ? withoutValues(value) : change(value),
    );
  } catch {
    // A setting of the app that is no JSON, such as a circular object.
    return undefined;
  }
}

function withoutValues(headers: object): object {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, '(not recorded)']));
}

function cutText(value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= maxTextLength) return value;
  const left = value.length - maxTextLength;
  return `${value.slice(0, maxTextLength)}… (${left} more characters)`;
}

function withLastMessages(content: unknown): unknown {
  if (!isRecord(content) || !isRecord(content.request)) return content;
  const { messages, ...request } = content.request;
  if (!Array.isArray(messages)) return content;
  const omitted = Math.max(0, messages.length - maxMessages);
  return {
    ...content,
    omitted,
    request: { ...request, messages: messages.slice(omitted) },
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
