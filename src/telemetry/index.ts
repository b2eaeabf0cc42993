/** Outlets of metrics. */
export { PROMETHEUS_CONTENT_TYPE, PrometheusSink } from './prometheus.ts'
