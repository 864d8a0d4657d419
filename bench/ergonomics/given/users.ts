/** The user with this token, as an identity provider would say. */
export async function userOf(
  token: string | null | undefined,
): Promise<{ id: string } | undefined> {
  return token === 'Bearer token-of-ada' || token === 'token-of-ada' ? { id: 'ada' } : undefined;
}

export const port = Number(process.env.PORT ?? 3000);
