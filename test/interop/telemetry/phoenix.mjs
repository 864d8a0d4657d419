// #region phoenix
import { convertGenAISpanAttributesToOpenInferenceSpanAttributes as convert } from '@arizeai/openinference-genai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeSDK } from '@opentelemetry/sdk-node';

class PhoenixExporter extends OTLPTraceExporter {
  export(spans, done) {
    for (const span of spans) Object.assign(span.attributes, convert(span.attributes));
    super.export(spans, done);
  }
}

const sdk = new NodeSDK({ traceExporter: new PhoenixExporter() });
sdk.start();
process.once('beforeExit', () => sdk.shutdown());
// #endregion
