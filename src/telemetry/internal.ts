/** Exports of telemetry for other folders of this project, not for users. */
export {
  type HttpAddress,
  type HttpAnswer,
  type HttpLimits,
  type HttpServer,
  serveHttp,
  toJsonAnswer,
} from './http-server.ts'
export { loadOpenTelemetry } from './open-telemetry.ts'
export { PROMETHEUS_CONTENT_TYPE, PrometheusSink } from './prometheus.ts'
