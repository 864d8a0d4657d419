import { type ReactNode, useState } from 'react';
import type { AgentInfo, InterruptAnswer, PendingInterrupts } from '../../../src/client/index.ts';
import { requestKey } from '../../../src/protocol/messages.ts';
import { type AnswerActions, InterruptCard } from '../conversation/interrupt-card.tsx';
import { duration, plural, shortId } from '../lib/format.ts';
import { placeHash } from '../lib/place.ts';
import { lookNow } from '../lib/pulse.ts';
import { agentOf } from '../lib/server.ts';
import { PageHeader } from '../shell/page-header.tsx';
import { useAgentInfo } from '../shell/use-agents.ts';
import { Empty } from '../ui/empty.tsx';
import { toast } from '../ui/toasts.tsx';
import { useInbox } from './use-inbox.ts';

/** Everything that waits for a person, in all sessions of all agents; answered in place. */
export function InboxView({ agents }: { readonly agents: readonly AgentInfo[] }): ReactNode {
  const inbox = useInbox();
  return (
    <main className="runs-view" aria-label="Inbox">
      <PageHeader title="Inbox">
        Tool calls that need an approval or an answer, oldest first.
      </PageHeader>
      {inbox?.items.length === 0 && (
        <Empty title="Nothing is waiting for you.">
          <p>When a tool asks for approval, its question is listed here.</p>
        </Empty>
      )}
      {inbox?.isMore && (
        <button type="button" className="text-button" onClick={inbox.loadMore}>
          Show older requests
        </button>
      )}
      <ul className="run-cards">
        {inbox?.items.map((item) => {
          const info = agents.find(({ name }) => name === item.agent);
          return (
            info && <Waiting key={item.snapshotId ?? item.sessionId} item={item} info={info} />
          );
        })}
      </ul>
    </main>
  );
}

function Waiting({
  item,
  info: listed,
}: {
  readonly item: PendingInterrupts;
  readonly info: AgentInfo;
}): ReactNode {
  const info = useAgentInfo(listed);
  const { agent, sessionId, title, since, interrupts } = item;
  const [answers, setAnswers] = useState<ReadonlyMap<string, InterruptAnswer>>(new Map());
  const [isBusy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    setBusy(true);
    try {
      await work();
      toast({ text: `Answered in “${title ?? shortId(sessionId)}”.` });
    } catch (error) {
      setAnswers(new Map());
      const reason = error instanceof Error ? error.message : String(error);
      toast({ text: `The answer was not accepted. ${reason}`, isFault: true });
    } finally {
      setBusy(false);
      lookNow();
    }
  };
  const actions: AnswerActions = {
    // A turn continues when all of its questions are answered.
    async resume(answer) {
      const named = 'toolResponse' in answer ? answer.toolResponse : answer.toolRequest;
      const all = new Map(answers).set(requestKey(named), answer);
      setAnswers(all);
      if (all.size < interrupts.length) return;
      await attempt(() => agentOf(agent).resume(item, [...all.values()]));
    },
    send: (words) => attempt(() => agentOf(agent).run(words, { sessionId })),
  };
  return (
    <li className="run-card">
      <div className="run-head">
        <a
          className="run-name"
          dir="auto"
          href={placeHash({ view: 'chat', agent, session: sessionId })}
        >
          {title ?? shortId(sessionId)}
        </a>
        <span className="quiet">
          {agent} · waits for {duration(Date.now() - Date.parse(since))}
          {interrupts.length > 1 && ` · ${plural(interrupts.length, 'question')}`}
        </span>
      </div>
      {interrupts.map((interrupt) => {
        const answer = answers.get(interrupt.key);
        return (
          <InterruptCard
            key={interrupt.key}
            interrupt={{ ...interrupt, ...(answer && { answer }) }}
            tool={info.tools?.find(({ name }) => name === interrupt.toolName)}
            actions={actions}
            isBusy={isBusy}
          />
        );
      })}
    </li>
  );
}
