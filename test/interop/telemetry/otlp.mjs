// #region otlp
import { NodeSDK } from '@opentelemetry/sdk-node';

const sdk = new NodeSDK({ serviceName: 'support' });
sdk.start();
// Send what is left before the process ends.
process.once('beforeExit', () => sdk.shutdown());
// #endregion
