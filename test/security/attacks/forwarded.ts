import type { Attack } from '../attack.ts';

const headers: readonly Readonly<Record<string, string>>[] = [
  { forwarded: 'for=203.0.113.7' },
  { 'x-forwarded-for': '203.0.113.7' },
  { 'x-forwarded-for': '127.0.0.1, 203.0.113.7' },
  { 'x-forwarded-host': 'agents.example' },
  { 'x-forwarded-proto': 'https' },
  { 'x-real-ip': '203.0.113.7' },
  { via: '1.1 proxy' },
  { 'cf-connecting-ip': '203.0.113.7' },
  { origin: 'https://agents.example', 'sec-fetch-site': 'same-origin' },
];
const paths = ['/agents/chat/turns', '/genkit/chat', '/ui/chat', '/api/runAction'];

/** Without auth, a proxy that rewrites the host opens nothing. */
export const attack: Attack = {
  name: 'forwarded requests',
  setup: { auth: false },
  async run({ url, check }) {
    for (const path of paths) {
      for (const given of headers) {
        const body = '{}';
        const response = await fetch(`${url}${path}`, { method: 'POST', headers: given, body });
        await response.text();
        const sent = JSON.stringify(given);
        check(response.status === 403, `${path} answered ${response.status} to ${sent}`);
      }
    }
    return paths.length * headers.length;
  },
};
