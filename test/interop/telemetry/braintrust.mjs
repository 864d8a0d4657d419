// #region braintrust
import { BraintrustSpanProcessor } from '@braintrust/otel';
import { NodeSDK } from '@opentelemetry/sdk-node';

const processor = new BraintrustSpanProcessor({ parent: 'project_name:support' });
const sdk = new NodeSDK({ spanProcessors: [processor] });
sdk.start();
process.once('beforeExit', () => sdk.shutdown());
// #endregion
