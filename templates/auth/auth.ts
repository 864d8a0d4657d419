import { createHash, timingSafeEqual } from 'node:crypto';
import type { Auth } from 'waymark/server';

const token = process.env.API_TOKEN;

/**
 * Clients send `Authorization: Bearer <API_TOKEN>`. Without API_TOKEN, only this machine can connect. Replace this with the
 * authentication of your users: each principal sees only its own sessions.
 */
export const auth: Auth | undefined = token
  ? (request) => {
      const given = digest(String(request.headers.get('authorization')));
      return timingSafeEqual(given, digest(`Bearer ${token}`)) ? { principal: 'api' } : undefined;
    }
  : undefined;

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
