/** A flow whose isolated task says which span it runs in. Children import this module, too, and the API with it. */
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { input, linear, task } from '../../../src/index.ts'

export const traced = linear(
  { name: 'traced', keepResults: true },
  input(),
  task('look', {
    provides: 'seen',
    isolate: true,
    execute: async (_, { log }) => {
      await Promise.resolve()
      const context = api.trace.getActiveSpan()?.spanContext()
      log.info('in a child')
      return { pid: process.pid, traceId: context?.traceId, spanId: context?.spanId, isRemote: context?.isRemote }
    },
  }),
)

/** Stands for the SDK that `--import` sets up in a child. */
export const services = () => {
  if (process.argv[1]?.includes('child-main'))
    api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  return {}
}
