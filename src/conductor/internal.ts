/** What other folders of this project need of conductors, and users do not. */

export { isOfOtherBoard } from './runs/book-owner.ts'
