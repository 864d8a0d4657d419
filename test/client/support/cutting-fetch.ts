/** A fetch whose answers break after so many bytes, as if the line had been cut. `undefined`: this one holds. */
export function cuttingFetch(cutAfter: (url: string) => number | undefined): typeof fetch {
  return async (target, init) => {
    const response = await fetch(target, init);
    const left = cutAfter(String(target));
    if (left === undefined || !response.body) return response;
    return new Response(cut(response.body, left), response);
  };
}

function cut(body: ReadableStream<Uint8Array>, after: number): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let left = after;
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await reader.read();
      if (done) {
        controller.close();
        return;
      }
      if (value.length <= left) {
        left -= value.length;
        controller.enqueue(value);
        return;
      }
      controller.enqueue(value.subarray(0, left));
      await reader.cancel();
      controller.error(new TypeError('terminated'));
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
