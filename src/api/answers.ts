import { WaymarkError } from '../core/error.ts';
import type { Resume } from '../protocol/turn.ts';
import type { Answers, SessionRef } from './agent-api.ts';
import { describeState } from './describe.ts';
import { type Interrupt, toResume } from './interrupts.ts';

/** A conversation, with its interrupts where they are known. */
interface Asked {
  readonly sessionId: string | undefined;
  readonly state?: SessionRef['state'];
  readonly interrupts?: readonly Interrupt[];
}

/** Reads the session that waits, with its interrupts. */
type ReadSession = (sessionId: string) => Promise<Pick<Asked, 'interrupts'> | undefined>;

/** The input of a turn that gives these answers. A function answers each interrupt; those that `asked` does not have are read. */
export function toAnswers(
  asked: Asked,
  answers: Answers,
  read: ReadSession,
): Resume | Promise<Resume> {
  if (typeof answers !== 'function') return toResume(answers);
  return interruptsOf(asked, read).then((all) => toResume(all.map((request) => answers(request))));
}

async function interruptsOf(asked: Asked, read: ReadSession): Promise<readonly Interrupt[]> {
  const { sessionId, state } = asked;
  const known = asked.interrupts ? asked : state && describeState({ state });
  const found = known ?? (sessionId === undefined ? undefined : await read(sessionId));
  if (found?.interrupts?.length) return found.interrupts;
  // The turn is refused, because there is no such session.
  if (sessionId && !found) return [];
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `Cannot resume ${sessionId ? `session "${sessionId}"` : 'a chat without a turn'}: no tool call waits for an answer.`,
  );
}
