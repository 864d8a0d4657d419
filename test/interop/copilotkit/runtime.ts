import { createServer, type Server } from 'node:http';
// #region runtime
import { HttpAgent } from '@ag-ui/client';
import { CopilotRuntime } from '@copilotkit/runtime/v2';
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node';

/** The endpoint of a CopilotKit page; `url` is the agent's, such as `http://127.0.0.1:3000/agui/desk`. */
export function createCopilotServer(url: string): Server {
  const runtime = new CopilotRuntime({ agents: { desk: new HttpAgent({ url }) } });
  return createServer(
    createCopilotNodeListener({ runtime, basePath: '/api/copilotkit', cors: true }),
  );
}
// #endregion
