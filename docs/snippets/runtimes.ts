import { memoryStore, waymark } from 'waymark';
import { handler, mcpProtocol } from 'waymark/server';

export const app = waymark({ store: memoryStore() });
const auth = (request: Request) =>
  request.headers.get('authorization') === 'Bearer secret' ? { principal: 'ann' } : undefined;

// #region protocols
// `mcp: true` works on Node.js, Bun and Deno only.
export const fetch = handler(app, { auth, protocols: [mcpProtocol()] });
// #endregion
