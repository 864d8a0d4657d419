import { invalid } from '../core/error.ts';
import type { OpenedFile, OpenFileOptions } from '../protocol/opened-file.ts';
import { responseError } from './remote-error.ts';
import type { RemoteRequest, Transport } from './transport.ts';

/** Opens a file on a server, or a range of it. */
export async function openRemoteFile(
  transport: Transport,
  request: RemoteRequest,
  { range }: OpenFileOptions,
): Promise<OpenedFile> {
  const { start = 0, end } = range ?? {};
  if (end !== undefined && !(end >= start)) {
    throw invalid(
      'The range of a file must have a start and an end that are whole numbers, and the end must not be before the start.',
    );
  }
  // HTTP has no empty range.
  const isEmpty = end !== undefined && end === start;
  const headers: Record<string, string> =
    range === undefined || (start === 0 && end === undefined)
      ? {}
      : { range: `bytes=${start}-${end === undefined || isEmpty ? '' : end - 1}` };
  const response = await transport.fetch({ ...request, headers });
  const isOutside = response.status === 416;
  if (!response.ok && !isOutside) throw await responseError(response);
  const { headers: answer } = response;
  const [, total] = /\/(\d+)$/.exec(answer.get('content-range') ?? '') ?? [];
  const hasBody = response.body !== null && !isOutside && !isEmpty;
  if (!hasBody) await response.body?.cancel();
  return {
    name: request.params?.file ?? '',
    contentType: answer.get('content-type') ?? 'application/octet-stream',
    size: Number(total ?? answer.get('content-length') ?? 0),
    hash: (answer.get('etag') ?? '').replaceAll('"', ''),
    stream: hasBody && response.body !== null ? response.body : new Blob().stream(),
  };
}
