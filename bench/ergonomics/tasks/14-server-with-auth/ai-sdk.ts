import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { pipeAgentUIStreamToResponse } from 'ai';
import { port, userOf } from '../../given/users.ts';
import { guide } from '../01-text-answer/ai-sdk.ts';

// #region task
createServer(async (request, response) => {
  const user = await userOf(request.headers.authorization);
  if (!user) return response.writeHead(401).end();
  const { messages } = (await json(request)) as { messages: unknown[] };
  await pipeAgentUIStreamToResponse({ agent: guide, uiMessages: messages, response });
}).listen(port);
// #endregion
