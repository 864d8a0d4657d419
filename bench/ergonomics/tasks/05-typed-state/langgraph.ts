import { ToolMessage } from '@langchain/core/messages';
import { type ToolRunnableConfig, tool } from '@langchain/core/tools';
import { Annotation, Command, MessagesAnnotation } from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { model } from '../../given/langgraph.ts';

// #region task
const stateSchema = Annotation.Root({
  ...MessagesAnnotation.spec,
  likes: Annotation<string[]>({ reducer: (old, next) => [...old, ...next], default: () => [] }),
});
const note = tool(
  ({ what }, { toolCall }: ToolRunnableConfig) => {
    const message = new ToolMessage({ content: 'noted', tool_call_id: toolCall?.id ?? 'none' });
    return new Command({ update: { likes: [what], messages: [message] } });
  },
  { name: 'note', description: 'Notes a taste', schema: z.object({ what: z.string() }) },
);
const planner = createReactAgent({ llm: model, tools: [note], stateSchema });
const answer = await planner.invoke({ messages: 'I like museums' });
console.log(answer.likes);
// #endregion
