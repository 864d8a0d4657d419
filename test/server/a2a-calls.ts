// biome-ignore-all lint/suspicious/noExplicitAny: tests look into whatever came
/** A server to call, and as whom. */
export interface Target {
  readonly url: string;
  readonly agent?: string;
  readonly token?: string;
  /** What stands before the token. @default 'Bearer ' */
  readonly scheme?: string;
  readonly version?: string;
}

type Result = Readonly<Record<string, any>>;

let last = 0;

/** One JSON-RPC request; gives the whole response. */
export async function rpc(
  { url, agent = 'chat', token, scheme = 'Bearer ', version }: Target,
  method: string,
  params: unknown = {},
): Promise<{ readonly status: number; readonly body: Result }> {
  const response = await fetch(`${url}/a2a/${agent}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(version && { 'a2a-version': version }),
      ...(token && { authorization: `${scheme}${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: ++last, method, params }),
  });
  return { status: response.status, body: (await response.json()) as Result };
}

/** The result of a method; throws what it was refused with. */
export async function call(target: Target, method: string, params?: unknown): Promise<Result> {
  const { body } = await rpc(target, method, params);
  if (body.error) throw new Error(`${body.error.code} ${body.error.message}`);
  return body.result;
}

/** A user message of 1.0. */
export function userMessage(parts: string | readonly object[], more: object = {}): object {
  return {
    messageId: crypto.randomUUID(),
    role: 'ROLE_USER',
    parts: typeof parts === 'string' ? [{ text: parts }] : parts,
    ...more,
  };
}

/** Sends a message and waits for the task to stop. */
export async function send(
  target: Target,
  parts: string | readonly object[],
  more: object = {},
  configuration: object = {},
): Promise<Result> {
  const { task } = await call(target, 'SendMessage', {
    message: userMessage(parts, more),
    configuration,
  });
  return task;
}

/** The results of a method that streams, one by one. */
export async function* stream(
  { url, agent = 'chat', token }: Target,
  method: string,
  params: unknown,
): AsyncGenerator<Result> {
  const response = await fetch(`${url}/a2a/${agent}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: ++last, method, params }),
  });
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    const { error } = (await response.json()) as Result;
    throw new Error(`${error.code} ${error.message}`);
  }
  let text = '';
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      if (!event.startsWith('data: ')) continue;
      const { result, error } = JSON.parse(event.slice(6));
      if (error) throw new Error(`${error.code} ${error.message}`);
      yield result;
    }
  }
}

/** The artifacts that a client holds after these events. */
export function artifactsAfter(events: readonly Result[]): Record<string, string> {
  const held: Record<string, string> = {};
  for (const { artifactUpdate } of events) {
    if (!artifactUpdate) continue;
    const { artifact, append } = artifactUpdate;
    const text = artifact.parts.map((part: Result) => part.text ?? '').join('');
    held[artifact.artifactId] = append ? (held[artifact.artifactId] ?? '') + text : text;
  }
  return held;
}

/** The text of a task's answer. */
export function answerOf(task: Result): string | undefined {
  const response = task.artifacts?.find((each: Result) => each.artifactId === 'response');
  return response?.parts.map((part: Result) => part.text ?? '').join('');
}
