import { handler } from 'waymark/server';
import { app } from '../../../agents.ts';

// Without `auth`, only this machine can connect. To deploy, pass `auth: (request) => ({ principal })`, which reads the
// session of your user; each principal sees only its own sessions.
const agents = handler(app, { basePath: '/api' });
const answer = (request: Request): Promise<Response> => agents(request);

export { answer as DELETE, answer as GET, answer as PATCH, answer as POST };
