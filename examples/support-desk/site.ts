import { Hono } from 'hono';
import type { App } from 'waymark';
import { handler } from 'waymark/server';
import { cookieAuth, signIn } from './sign-in.ts';

/** The page, and the agents below `/api`. `page` is the script of the page. */
export function createSite(app: App, { secret, page }: { secret: string; page: string }): Hono {
  // #region site
  const agents = handler(app, { basePath: '/api', auth: cookieAuth(secret) });
  return new Hono()
    .get('/', (c) => c.html(html))
    .get('/page.js', (c) => c.body(page, 200, { 'content-type': 'text/javascript' }))
    .post('/sign-in', (c) => signIn(c, secret))
    .all('/api/*', (c) => agents(c.req.raw));
  // #endregion
}

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Support desk</title>
<link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { margin: 0 auto; max-width: 60rem; padding: 1rem; }
  .desk { display: grid; grid-template-columns: 14rem 1fr; gap: 2rem; }
  .user { font-weight: 600; }
  .call, small { opacity: 0.75; font-size: 0.875rem; }
  .waiting { border: 1px solid; border-radius: 0.5rem; padding: 0.5rem 1rem; }
  nav button { display: block; width: 100%; text-align: left; }
  form { display: flex; gap: 0.5rem; margin-top: 1rem; }
  form input { flex: 1; }
  @media (max-width: 40rem) { .desk { grid-template-columns: 1fr; } }
</style>
</head>
<body><div id="root"></div><script type="module" src="/page.js"></script></body>
</html>`;
