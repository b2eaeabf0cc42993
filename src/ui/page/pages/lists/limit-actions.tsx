/** The actions on a limit. */
import type { JSX } from 'preact'
import type { WireLimit } from '../../../wire/board.ts'
import { Action } from '../../parts/action.tsx'
import { act } from '../../state/acting.ts'
import type { Answer, Field } from '../../state/asking.ts'
import { texts } from '../../texts.ts'

const t = texts.limits

export function LimitActions({ limit }: { limit: WireLimit }): JSX.Element {
  const { key, held } = limit
  const withReason = ({ reason }: Answer): object => (reason ? { reason } : {})
  const title = (action: string): string => `${action}: ${key}`
  return (
    <div class="buttons">
      {held === undefined ? (
        <>
          <Action
            needs="limit.stop"
            danger
            onClick={() =>
              act(
                'limits',
                { title: title(t.stop), text: t.stopText, yes: t.stop, reason: true, danger: true },
                (answer) => ({ action: 'stop', key, ...withReason(answer) }),
                t.stopDone,
              )
            }
          >
            {t.stop}
          </Action>
          <Action
            needs="limit.pushBack"
            onClick={() =>
              act(
                'limits',
                { title: title(t.pushBack), text: t.pushBackText, yes: t.pushBack, reason: true, fields: [SECONDS] },
                (answer) => ({
                  action: 'pushBack',
                  key,
                  forMs: Math.max(1, Math.round(Number(answer['seconds'] || 60) * 1_000)),
                  ...withReason(answer),
                }),
                t.pushBackDone,
              )
            }
          >
            {t.pushBack}
          </Action>
        </>
      ) : (
        <Action
          needs="limit.resume"
          onClick={() => act('limits', undefined, () => ({ action: 'resume', key }), t.resumeDone)}
        >
          {t.resume}
        </Action>
      )}
      <Action needs="limit.set" onClick={() => setLimit(limit)}>
        {t.set}
      </Action>
      <Action
        needs="limit.remove"
        danger
        onClick={() =>
          act(
            'limits',
            { title: title(t.remove), text: t.removeText, yes: t.remove, danger: true },
            () => ({ action: 'remove', key }),
            t.removeDone,
          )
        }
      >
        {t.remove}
      </Action>
    </div>
  )
}

const SECONDS: Field = { name: 'seconds', label: t.seconds, type: 'number', value: '60' }

/** Asks for the numbers of a limit, and sets it. @param limit the present limit; undefined for a new one */
export function setLimit(limit: WireLimit | undefined): Promise<boolean> {
  const { key, concurrency, rate, fair } = limit ?? {}
  const fields: Field[] = [
    { name: 'concurrency', label: t.fields.concurrency, type: 'number', value: text(concurrency) },
    { name: 'limit', label: t.fields.limit, type: 'number', value: text(rate?.limit) },
    {
      name: 'per',
      label: t.fields.per,
      type: 'number',
      value: text(rate === undefined ? undefined : rate.perMs / 1_000),
    },
    { name: 'burst', label: t.fields.burst, type: 'number', value: text(rate?.burst) },
    { name: 'fair', label: t.fields.fair, type: 'checkbox', value: fair ? 'on' : '' },
  ]
  if (key === undefined)
    fields.unshift({ name: 'key', label: t.fields.key, type: 'text', hint: t.fields.keyHint, required: true })
  const question = { title: key === undefined ? t.add : `${t.set}: ${key}`, text: t.setText, yes: t.save, fields }
  return act('limits', question, (answer) => toSetBody(key ?? answer['key'] ?? '', answer), t.setDone)
}

/** @throws Error for a limit without numbers */
function toSetBody(key: string, answer: Answer): object {
  const { concurrency, limit, per, burst, fair } = answer
  if (limit && !per) throw new Error(t.perMissing)
  if (!concurrency && !limit) throw new Error(t.nothingSet)
  return {
    action: 'set',
    key,
    ...(concurrency ? { concurrency: Number(concurrency) } : {}),
    ...(limit
      ? {
          rate: {
            limit: Number(limit),
            perMs: Math.round(Number(per) * 1_000),
            ...(burst ? { burst: Number(burst) } : {}),
          },
        }
      : {}),
    ...(fair ? { fair: true } : {}),
  }
}

function text(value: number | undefined): string {
  return value === undefined ? '' : String(value)
}
