import { scriptedModel } from 'waymark/testing';

/** The model of the Waymark files, so that they run. */
export const model = scriptedModel({
  patterns: [
    [/How is (\w+)/, ([, city = 'it']) => ({ toolCalls: [{ name: 'weather', input: { city } }] })],
    [/I like (\w+)/, ([, what = 'it']) => ({ toolCalls: [{ name: 'note', input: { what } }] })],
    [/How long/, { toolCalls: [{ name: 'count', input: {} }] }],
    [/Refund/, { toolCalls: [{ name: 'refund', input: { order: '7', amount: 40 } }] }],
    [/Oslo/, '{"city":"Oslo","days":3}'],
    [/Ask the guide/, { toolCalls: [{ name: 'guide', input: { message: 'Two days in Faro' } }] }],
    [/Atlantis/, { error: new Error('The model is overloaded.') }],
  ],
  otherwise: { chunks: ['See the ', 'river.'] },
});
