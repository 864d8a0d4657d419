/** Resolves after Node has delivered what both ends of a loopback socket in this process have already sent or closed. */
export async function deliverIo(): Promise<void> {
  // Each round polls all sockets once, however busy the machine is. Closing a socket takes several.
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve));
}
