// #region langfuse
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { NodeSDK } from '@opentelemetry/sdk-node';

// By default the processor leaves out spans without `gen_ai` attributes, such as `turn 0`.
const shouldExportSpan = ({ otelSpan }) => otelSpan.instrumentationScope.name === 'waymark';
const sdk = new NodeSDK({ spanProcessors: [new LangfuseSpanProcessor({ shouldExportSpan })] });
sdk.start();
process.once('beforeExit', () => sdk.shutdown());
// #endregion
