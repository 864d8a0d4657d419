/** Exits with 0 if the server of this container is ready for requests. */
const url = `http://127.0.0.1:${process.env.PORT ?? 3000}/readyz`;
const response = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
process.exitCode = response?.ok ? 0 : 1;
