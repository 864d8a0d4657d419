import { turnRequest } from '../../protocol/requests.ts';
import { routes } from '../../protocol/routes.ts';
import { answerTurn } from '../answer-turn.ts';
import { readBody } from '../body.ts';
import { jsonResponse } from '../json-response.ts';
import { requestIdOf, underRequestId } from '../request-id.ts';
import { openCall, type Router, type Served } from '../served.ts';
import { wantsEvents } from '../sse.ts';
import { nativeFormat } from './format.ts';

/** `runTurn`: one turn, as a stream of events or as its output. */
export function mountTurns(router: Router, served: Served): void {
  router.post(routes.runTurn.path, async (c) => {
    const body = await readBody(c, turnRequest, { what: 'turn', ...served });
    const { init } = body;
    const input = underRequestId(body.input, requestIdOf(c), body.requestId);
    const call = await openCall(served, c, 'runTurn', init);
    return answerTurn(served, c, call, {
      init,
      input,
      stream: wantsEvents(c) && nativeFormat,
      respond: (output) => jsonResponse(output),
    });
  });
}
