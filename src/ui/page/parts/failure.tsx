/** An error with its causes. */
import type { JSX } from 'preact'
import type { WireFailure } from '../../wire/common.ts'
import { texts } from '../texts.ts'
import { Folded, Name } from './text.tsx'

const MAX_DEPTH = 8

export function FailureTree({ failure, depth = 0 }: { failure: WireFailure; depth?: number }): JSX.Element {
  const { name, message, code, causes = [] } = failure
  return (
    <div class="failure">
      <p>
        <strong>
          <Name text={name} max={80} />
        </strong>{' '}
        {code !== undefined && (
          <code>
            <Name text={code} max={80} />
          </code>
        )}{' '}
        <Folded text={message} />
      </p>
      {depth < MAX_DEPTH && causes.length > 0 && (
        <>
          <p class="quiet">{texts.causedBy}</p>
          {causes.map((cause, index) => (
            <FailureTree key={index} failure={cause} depth={depth + 1} />
          ))}
        </>
      )}
    </div>
  )
}
