import { waymark } from 'waymark';
import { type CalcPrice, priceTable } from 'waymark/prices';

// As in the package; so that this file runs without it.
const calcPrice: CalcPrice = () => ({ total_price: 0.001 });

// #region table
const app = waymark({ price: priceTable(calcPrice) });
// #endregion
await app.close();
