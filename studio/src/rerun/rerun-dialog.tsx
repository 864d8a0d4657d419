import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { goTo } from '../lib/place.ts';
import { lookNow } from '../lib/pulse.ts';
import { Dialog } from '../ui/dialog.tsx';
import { FormButtons } from '../ui/form-buttons.tsx';
import { toast } from '../ui/toasts.tsx';
import { type RerunChanges, rerun } from './rerun.ts';

/** Runs a turn, or the conversation up to it, again with something changed, and shows both side by side. */
export function RerunDialog({
  agent,
  model,
  snapshotId,
  turn,
  onClose,
}: {
  readonly agent: string;
  /** The agent's own model. */
  readonly model: string | undefined;
  readonly snapshotId: string;
  /** Counted from 1. */
  readonly turn: number;
  readonly onClose: () => void;
}): ReactNode {
  const id = useId();
  const [fields, setFields] = useState(emptyFields);
  const [fault, setFault] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const running = useRef<AbortController>(undefined);
  // Closing the dialog stops the rerun.
  useEffect(() => () => running.current?.abort(), []);
  const set = (change: Partial<Fields>): void => setFields((before) => ({ ...before, ...change }));
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    running.current = new AbortController();
    const { signal } = running.current;
    try {
      const request = { agent, snapshotId, ...changesOf(fields) };
      const { sessionId, stopped } = await rerun(request, signal);
      // Another dialog may be open by now.
      if (signal.aborted) return;
      onClose();
      goTo({ view: 'chat', agent, session: sessionId, base: snapshotId });
      if (stopped !== undefined) {
        toast({ text: `The replay stopped early. ${stopped}`, isFault: true });
      }
      lookNow();
    } catch (error) {
      if (signal.aborted) return;
      setFault(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Run turn ${turn} again with…`} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <div className="field">
          <label htmlFor={`${id}-model`}>Model</label>
          <input
            id={`${id}-model`}
            type="text"
            placeholder={model ?? 'the agent’s own'}
            value={fields.model}
            onChange={(event) => set({ model: event.target.value })}
          />
        </div>
        <div className="field">
          <label htmlFor={`${id}-system`}>System prompt</label>
          <textarea
            id={`${id}-system`}
            rows={4}
            dir="auto"
            placeholder="the agent’s own"
            value={fields.system}
            onChange={(event) => set({ system: event.target.value })}
          />
        </div>
        <div className="field">
          <label htmlFor={`${id}-temperature`}>Temperature</label>
          <input
            id={`${id}-temperature`}
            type="number"
            step="any"
            min={0}
            placeholder="the agent’s own"
            value={fields.temperature}
            onChange={(event) => set({ temperature: event.target.value })}
          />
        </div>
        <div className="field">
          <label htmlFor={`${id}-scope`}>What to run</label>
          <select
            id={`${id}-scope`}
            value={fields.scope}
            onChange={(event) => set({ scope: event.target.value as Fields['scope'] })}
          >
            <option value="turn">This turn only</option>
            <option value="conversation">The conversation from its start</option>
          </select>
        </div>
        <div className="field">
          <label htmlFor={`${id}-tools`}>Tools</label>
          <select
            id={`${id}-tools`}
            value={fields.tools}
            onChange={(event) => set({ tools: event.target.value as Fields['tools'] })}
          >
            <option value="recorded">Answer from the recording: nothing is executed</option>
            <option value="live">Run them again</option>
          </select>
        </div>
        <p className="fault-text" role="alert">
          {fault}
        </p>
        <FormButtons disabled={isBusy} onCancel={onClose}>
          {isBusy ? 'Running…' : 'Run and compare'}
        </FormButtons>
      </form>
    </Dialog>
  );
}

interface Fields {
  readonly model: string;
  readonly system: string;
  readonly temperature: string;
  readonly scope: RerunChanges['scope'];
  readonly tools: RerunChanges['tools'];
}

const emptyFields: Fields = {
  model: '',
  system: '',
  temperature: '',
  scope: 'turn',
  tools: 'recorded',
};

function changesOf({ model, system, temperature, scope, tools }: Fields): RerunChanges {
  return {
    scope,
    tools,
    ...(model.trim() !== '' && { model: model.trim() }),
    ...(system.trim() !== '' && { system }),
    ...(temperature !== '' && { config: { temperature: Number(temperature) } }),
  };
}
