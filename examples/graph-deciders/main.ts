/** A graph: the tasks' requirements decide the order, and deciders choose the branches. */
import { graph, input, link, runFlow, task, toMermaid } from 'jobboard'

const check = task('check', {
  requires: ['order'],
  provides: 'state',
  execute: ({ order }: { order: { paid: boolean } }) => (order.paid ? 'paid' : 'open'),
})
const ship = task('ship', {
  requires: ['order'],
  execute: ({ order }: { order: { id: string } }) => console.log(`${order.id} is shipped`),
})
const thank = task('thank', { execute: () => console.log('thank you') })
const remind = task('remind', {
  requires: ['order'],
  execute: ({ order }: { order: { id: string } }) => console.log(`${order.id} is not paid yet`),
})
const file = task('file', {
  requires: ['state'],
  execute: ({ state }: { state: string }) => console.log(`filed as ${state}`),
})

const is = (wanted: string) => (history: { check: string }) => history.check === wanted

const order = graph(
  {
    name: 'order',
    links: [
      // Without shipping there is no thank-you mail; the order is filed in both cases.
      link(check, ship, { decider: is('paid'), depth: 'FLOW' }),
      link(ship, thank),
      link(check, remind, { decider: is('open'), depth: 'ATOM' }),
      link(remind, file),
    ],
  },
  input<{ order: { id: string; paid: boolean } }>(),
  // The order of this list does not matter.
  file,
  thank,
  remind,
  ship,
  check,
)

for (const paid of [true, false]) await runFlow(order, { order: { id: 'no. 7', paid } }, { concurrency: 1 })
console.log(toMermaid(order))
