import assert from 'node:assert/strict';
import { memoryStore, tool, verifyWebhook, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';

const port = 0;
process.env.WEBHOOK_SECRET = `whsec_${btoa('a secret for the webhooks of this page')}`;

const bankModel = scriptedModel({
  patterns: [[/./, { toolCalls: [{ name: 'transfer', input: {} }] }]],
  otherwise: 'Nothing.',
});

// #region bank
import { serve } from 'waymark/server';

const bank = waymark({ model: bankModel, store: memoryStore() });
const transfer = tool(
  { name: 'transfer', description: 'Transfers money.' },
  (_, { interrupt, resumed }) => (resumed === undefined ? interrupt() : 'Transferred.'),
);
bank.defineAgent({ name: 'bank', description: 'Transfers money.', tools: [transfer] });

const server = await serve(bank, { port, a2a: true });
console.log(`${server.url}/a2a/bank`); // http://127.0.0.1:3000/a2a/bank
// #endregion

const leadModel = scriptedModel({
  patterns: [[/./, { toolCalls: [{ name: 'bank', input: { message: 'Transfer 50 to Ann' } }] }]],
  otherwise: 'Nothing.',
});

// #region lead
import { a2aAgentTool } from 'waymark/a2a';

const office = waymark({ model: leadModel, store: memoryStore() });
const askBank = a2aAgentTool(`${server.url}/a2a/bank`, {
  name: 'bank',
  description: 'Transfers money. Say how much and to whom.',
});
const lead = office.defineAgent({ name: 'lead', system: 'Pay the bills.', tools: [askBank] });

const asked = await lead.run('Pay Ann');
const [question] = asked.interrupts;
console.log(question?.metadata); // { message, schema, a2a: { taskId } }
if (question) {
  const paid = await lead.resume(asked, question.approve()); // or approve({ resumed: answer }) for other questions
  console.log(paid.text);
}
// #endregion
assert.equal(asked.finishReason, 'interrupted');
const tasks = await bank.agent('bank').listSessions();
assert.equal(tasks.items.length, 1);

// #region push
const notifying = waymark({
  model: bankModel,
  store: memoryStore(),
  webhooks: { secret: process.env.WEBHOOK_SECRET },
});
// #endregion
process.env.RECEIVER_SECRET = notifying.webhooks?.secretFor('https://client.example/hook');
// #region verify
const seen = new Set<string>();

async function receive(request: Request): Promise<Response> {
  const body = await request.text();
  const { id } = verifyWebhook(body, request.headers, { secret: process.env.RECEIVER_SECRET });
  if (!seen.has(id)) {
    seen.add(id);
    const { task } = JSON.parse(body);
    console.log(task.id, task.status.state);
  }
  return new Response();
}
// #endregion
await assert.rejects(receive(new Request('https://example.com', { method: 'POST', body: '{}' })));

await office.close();
await notifying.close();
await server.close();
await bank.close();
