/** A flow whose tasks run in child processes, and its services, which say how often they were made. */
import { type Context, defineServices, input, linear, service, task } from '../../../src/index.ts'

let processes = 0
let jobs = 0

export const services = defineServices({
  process: service(() => {
    processes += 1
    return `process ${processes}`
  }),
  job: service(
    ({ process }: { process: string }, { job }) => {
      jobs += 1
      return `${process}, job ${jobs} of ${job?.details['tenant']}`
    },
    { scope: 'job' },
  ),
})

const tell = (provides: string) =>
  task(provides, {
    ...{ provides, isolate: true },
    execute: async (_: object, ctx: Context<{ job: string }>) => ctx.services.job,
  })

export const isolated = linear({ name: 'isolated', keepResults: true }, input(), tell('first'), tell('second'))
