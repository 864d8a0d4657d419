import type { Context } from 'hono';
import { setSignedCookie } from 'hono/cookie';
import { parseSigned } from 'hono/utils/cookie';
import type { Auth } from 'waymark/server';
import type { Employee } from './desk.ts';

/** The employees of the demo. They have no passwords: use the sign-in of your company instead. */
const employees = new Map<string, Employee>([
  ['ada', { name: 'Ada', refundLimit: 500 }],
  ['bob', { name: 'Bob', refundLimit: 50 }],
]);

// #region auth
const cookie = 'desk';

/** Reads the signed cookie. The id is the owner of the conversations; the employee is the context of the tools. */
export function cookieAuth(secret: string): Auth {
  return async (request) => {
    const cookies = await parseSigned(String(request.headers.get('cookie')), secret, cookie);
    const id = cookies[cookie];
    const employee = id ? employees.get(id) : undefined;
    return id && employee ? { principal: id, context: { ...employee } } : undefined;
  };
}
// #endregion

/** Signs an employee in, with a cookie that scripts cannot read. */
export async function signIn(c: Context, secret: string): Promise<Response> {
  const { id } = await c.req.json<{ id?: unknown }>();
  if (typeof id !== 'string' || !employees.has(id)) return c.text('Unknown employee', 401);
  await setSignedCookie(c, cookie, id, secret, { httpOnly: true, sameSite: 'Strict', path: '/' });
  return c.body(null, 204);
}
