import type { Message } from '../protocol/message.ts';
import { reachesEnd } from '../protocol/message-page.ts';
import { type Summary, summaryOf } from '../protocol/messages/summary.ts';
import { textOf } from '../protocol/messages/text.ts';
import { type Interrupt, interruptsAtEnd, interruptsOf } from './interrupts.ts';

/** Computed properties of an output. They are not part of its JSON. */
export interface OutputAccessors {
  /** The text of the answer, '' if there is none. */
  readonly text: string;
  /** The tool calls that wait for an answer; empty unless the turn was interrupted. */
  readonly interrupts: readonly Interrupt[];
}

/** Computed properties of a snapshot or session. They are not part of its JSON. */
export interface StateAccessors {
  /** The text of the latest answer, '' if there is none. */
  readonly text: string;
  /** The tool calls that wait for an answer. */
  readonly interrupts: readonly Interrupt[];
  /** The summary that the model gets in place of the older messages; `undefined` if it gets all of them. */
  readonly summary: Summary | undefined;
}

interface WithMessage {
  readonly message?: Message | undefined;
}

interface WithState {
  readonly state?: { readonly messages?: readonly Message[] | undefined } | undefined;
  readonly messageRange?: { readonly from: number; readonly total: number } | undefined;
}

// Shared by all outputs: they read what they describe by `this`.
const ofOutput = accessorsOf<WithMessage>({
  text: {
    get() {
      return textOf(this.message);
    },
  },
  interrupts: {
    get() {
      return interruptsOf(this.message);
    },
  },
});

const ofState = accessorsOf<WithState>({
  text: {
    get() {
      const last = this.state?.messages?.findLast(({ role }) => role === 'model');
      return textOf(last);
    },
  },
  interrupts: {
    get() {
      // An earlier page of the messages says nothing about the end.
      return reachesEnd(this) ? interruptsAtEnd(this.state?.messages ?? []) : [];
    },
  },
  summary: {
    get() {
      return summaryOf(this.state?.messages ?? []);
    },
  },
});

type Accessors = readonly (readonly [string, PropertyDescriptor])[];

function accessorsOf<Given>(accessors: PropertyDescriptorMap & ThisType<Given>): Accessors {
  return Object.entries(accessors);
}

/** Adds the accessors to an output. They are not enumerable: as JSON, and to `toEqual`, it stays what it was. */
export function describeOutput<Given extends WithMessage>(output: Given): Given & OutputAccessors {
  return described(output, ofOutput) as Given & OutputAccessors;
}

/** Adds the accessors to a snapshot or a session. */
export function describeState<Given extends WithState>(given: Given): Given & StateAccessors {
  return described(given, ofState) as Given & StateAccessors;
}

function described<Given extends object>(given: Given, accessors: Accessors): Given {
  if ('interrupts' in given) return given;
  const target = Object.isExtensible(given) ? given : { ...given };
  // One by one, which takes half as long as `defineProperties`.
  for (const [name, accessor] of accessors) Object.defineProperty(target, name, accessor);
  return target;
}
