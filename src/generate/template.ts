import type { ActionContext } from '../core/action.ts';
import type { Message, Part, Role } from '../protocol/message.ts';

/** The content of a message: a text, a part, or several parts. */
export type Content = string | Part | readonly Part[];

export function toParts(content: Content): Part[] {
  if (typeof content === 'string') return [{ text: content }];
  return 'length' in content ? [...content] : [content];
}

/** A message of the user. */
export function userMessage(content: Content): Message {
  return messageOf('user', content);
}

/** A message of the model. */
export function modelMessage(content: Content): Message {
  return messageOf('model', content);
}

/** A message that instructs the model. */
export function systemMessage(content: Content): Message {
  return messageOf('system', content);
}

/** A message with tool results. */
export function toolMessage(content: Content): Message {
  return messageOf('tool', content);
}

function messageOf(role: Role, content: Content): Message {
  return { role, content: toParts(content) };
}

/** The values that a template can use. */
export interface TemplateScope<Input = unknown, State = unknown> {
  /** The input of the prompt. */
  readonly input: Input;
  /** The custom state of the session around it; `{{@state.field}}` in a text. */
  readonly state: State;
  /** The caller's context; `{{@auth.name}}` in a text for `context.auth.name`. */
  readonly context: ActionContext;
}

/** Content that is made for each request: fixed, a text with `{{placeholders}}`, or a function. */
export type Template<Input = unknown, State = unknown> =
  | Content
  | ((scope: TemplateScope<Input, State>) => Content | Promise<Content>);

/** Messages that are made for each request; `historyPlace` among them is where the conversation goes. */
export type MessagesTemplate<Input = unknown, State = unknown> =
  | string
  | readonly Message[]
  | ((scope: TemplateScope<Input, State>) => readonly Message[] | Promise<readonly Message[]>);

/** Marks the place of the conversation among the messages of a template; without it, the conversation comes last. */
export const historyPlace: Message = Object.freeze({
  role: 'user',
  content: [],
  metadata: Object.freeze({ purpose: 'history' }),
});

/** Renders texts with `{{placeholders}}` into messages. */
export interface TemplateEngine {
  render(source: string, scope: TemplateScope): Promise<readonly Message[]>;
}

export async function renderContent<Input, State>(
  template: Template<Input, State>,
  scope: TemplateScope<Input, State>,
  engine: TemplateEngine,
): Promise<Part[]> {
  if (typeof template === 'function') return toParts(await template(scope));
  if (typeof template !== 'string' || !hasPlaceholders(template)) return toParts(template);
  const messages = await engine.render(template, scope);
  return messages.flatMap(({ content }) => content);
}

export async function renderMessages<Input, State>(
  template: MessagesTemplate<Input, State>,
  scope: TemplateScope<Input, State>,
  engine: TemplateEngine,
): Promise<readonly Message[]> {
  if (typeof template === 'function') return template(scope);
  if (typeof template !== 'string') return template;
  // A text without marks is a user message, behind the conversation as in a text with marks.
  return hasPlaceholders(template)
    ? engine.render(template, scope)
    : [historyPlace, userMessage(template)];
}

/** Messages as those before the conversation and those behind it. */
export function splitAtHistory(messages: readonly Message[]): {
  readonly before: readonly Message[];
  readonly after: readonly Message[];
} {
  const place = messages.findIndex(({ metadata }) => metadata?.purpose === 'history');
  if (place < 0) return { before: messages, after: [] };
  return { before: messages.slice(0, place), after: messages.slice(place + 1) };
}

function hasPlaceholders(text: string): boolean {
  return text.includes('{{');
}
