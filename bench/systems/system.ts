import { reply } from '../lib/text.ts';

/** What a system keeps its sessions in. */
export type Keeps = 'nothing' | 'memory' | 'disk';

/** One way of using a system. */
export interface Variant {
  /** As the tables call it: system and store. */
  readonly title: string;
  readonly keeps: Keeps;
  /** What it shares the floor of. */
  readonly store?: 'sqlite' | 'sqlite-full' | 'file' | 'file-synced' | 'postgres';
  /** What a reader of the tables must know. */
  readonly note: string;
}

/** Where a variant keeps what it stores. */
export interface Place {
  readonly directory: string;
  /** A Postgres database of its own, empty at first. */
  readonly postgres: string;
  /** Whether the model asks for a tool in each turn. */
  readonly tools: boolean;
}

/** A value that goes to another process. */
export type Ref = Readonly<Record<string, unknown>>;

/** A system that is set up with the instant model. */
export interface Running<Session = unknown> {
  /** A new, empty session. */
  start(id: string): Session | Promise<Session>;
  /** One turn, its stream read to the end. Resolves to the characters that were streamed. */
  turn(session: Session, text: string): Promise<number>;
  /** Something by which another process finds the session. */
  ref?(session: Session): Ref | Promise<Ref>;
  resume?(ref: Ref): Session | Promise<Session>;
  /** Something by which this moment of the session is found later. */
  mark?(session: Session): Ref | Promise<Ref>;
  /** A session that goes on from a marked moment and leaves the marked one as it is. */
  branch?(mark: Ref): Session | Promise<Session>;
  /** Bytes that are stored. */
  bytes?(): number | Promise<number>;
  /** Lets go of a session, as far as the system can. */
  forget?(session: Session): void | Promise<void>;
  close?(): void | Promise<void>;
}

/** A system under test: one file each, loaded only in the processes that measure it. */
export interface System {
  /** Loads the modules that only this variant needs, so that they are not timed with what it does. */
  load?(variant: string): Promise<unknown>;
  open(variant: string, place: Place): Promise<Running>;
}

/** The moment at which the first text of the process reached the caller. */
export const firstText: { at: number | undefined } = { at: undefined };

/** The length of a piece of streamed text, which is noted if it is the first one. */
export function noted(length: number): number {
  if (length > 0) firstText.at ??= performance.timeOrigin + performance.now();
  return length;
}

/** What the model was given last; a system that sends it less than the whole conversation has an easier life. */
export const seen = { messages: 0 };

/** The instant model's answer to this many messages. */
export function answer(messages: number): ReturnType<typeof reply> {
  seen.messages = messages;
  return reply();
}
