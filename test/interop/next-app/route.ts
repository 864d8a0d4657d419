// #region route
// app/api/[...path]/route.ts
import { handler } from 'waymark/server';
import { app } from './app.ts';

const agents = handler(app, { basePath: '/api' });
const answer = (request: Request): Promise<Response> => agents(request);

export { answer as DELETE, answer as GET, answer as PATCH, answer as POST };
// #endregion
