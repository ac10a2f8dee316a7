// The kinds of shops in a sample, with their names, prices and times of purchases.

export interface Trade {
  readonly category: string;
  /** A shop's name consists of a family name and one of these words. */
  readonly kinds: readonly string[];
  readonly tags: readonly string[];
  readonly keywords: readonly string[];
  /** The usual price of a purchase before any discount. */
  readonly usualPrice: number;
  /** The share of purchases made in a branch, in shops that have branches. */
  readonly inStoreShare: number;
  readonly rhythm: Rhythm;
}

/** The weights of the times at which students buy. The lists begin with midnight, Sunday and January. */
export interface Rhythm {
  readonly hours: readonly number[];
  readonly weekdays: readonly number[];
  readonly months: readonly number[];
}

const daytime: Rhythm = {
  hours: [0, 0, 0, 0, 0, 0, 0, 1, 3, 6, 9, 10, 14, 13, 11, 12, 13, 13, 10, 6, 3, 2, 1, 0],
  weekdays: [5, 12, 13, 13, 13, 11, 8],
  months: [9, 9, 10, 10, 10, 8, 6, 6, 11, 12, 11, 10],
};
const leisure: Rhythm = {
  hours: [4, 2, 1, 0, 0, 0, 1, 2, 4, 5, 6, 7, 8, 8, 8, 8, 9, 10, 12, 15, 17, 17, 13, 8],
  weekdays: [12, 7, 7, 8, 10, 15, 18],
  months: [7, 6, 7, 7, 9, 9, 8, 7, 10, 10, 16, 18],
};
export const term: Rhythm = {
  hours: leisure.hours,
  weekdays: [10, 10, 10, 10, 10, 10, 10],
  months: [12, 8, 6, 5, 5, 4, 2, 4, 18, 16, 7, 5],
};

function words(text: string): readonly string[] {
  return text.split(', ');
}

export const trades: readonly Trade[] = [
  {
    category: 'Coffee and tea',
    kinds: words('Coffee, Roasters, Espresso Bar, Tea & Coffee, Café'),
    tags: words('Takeaway, Breakfast, Vegan options, Study spots'),
    keywords: words('coffee, tea, latte, cake, brunch'),
    usualPrice: 5,
    inStoreShare: 0.95,
    rhythm: daytime,
  },
  {
    category: 'Restaurants',
    kinds: words('Kitchen, Pizza, Noodle Bar, Grill, Bistro'),
    tags: words('Takeaway, Delivery, Vegan options, Late night'),
    keywords: words('pizza, burger, noodles, lunch, dinner'),
    usualPrice: 16,
    inStoreShare: 0.7,
    rhythm: leisure,
  },
  {
    category: 'Groceries',
    kinds: words('Market, Grocers, Bakery, Corner Shop'),
    tags: words('Delivery, Organic, Vegan options, Plastic free'),
    keywords: words('groceries, fruit, bread, snacks'),
    usualPrice: 22,
    inStoreShare: 0.85,
    rhythm: daytime,
  },
  {
    category: 'Fashion',
    kinds: words('Clothing, Outfitters, Denim, Vintage, Footwear'),
    tags: words('Free returns, New in, Sustainable, Second hand'),
    keywords: words('jeans, jacket, trainers, dress, hoodie'),
    usualPrice: 48,
    inStoreShare: 0.4,
    rhythm: leisure,
  },
  {
    category: 'Computers and phones',
    kinds: words('Electronics, Computers, Audio, Repairs'),
    tags: words('Free returns, Refurbished, Instalments, New in'),
    keywords: words('laptop, headphones, tablet, phone, charger'),
    usualPrice: 210,
    inStoreShare: 0.3,
    rhythm: term,
  },
  {
    category: 'Books and stationery',
    kinds: words('Books, Books & Paper, Stationers, Textbooks, "Second Reading"'),
    tags: words('Second hand, Study spots, Delivery, Gifts'),
    keywords: words('textbooks, novels, notebooks, pens, comics'),
    usualPrice: 27,
    inStoreShare: 0.5,
    rhythm: term,
  },
  {
    category: 'Travel',
    kinds: words('Travel, Coaches, Hostels, City Bikes'),
    tags: words('Last minute, Groups, Flexible booking, Weekend trips'),
    keywords: words('train, coach, hostel, flights, bike hire'),
    usualPrice: 74,
    inStoreShare: 0.1,
    rhythm: leisure,
  },
  {
    category: 'Sports',
    kinds: words('Gym, Climbing, Yoga Studio, Sportswear'),
    tags: words('Memberships, Classes, Groups, New in'),
    keywords: words('gym, yoga, climbing, running, swimming'),
    usualPrice: 32,
    inStoreShare: 0.6,
    rhythm: term,
  },
];

export const courses = words(
  'Accounting, Architecture, Art History, Biology, Business Administration, Chemistry, Civil Engineering, ' +
    'Computer Science, Data Science, Economics, Education, English Literature, Geography, Graphic Design, History, ' +
    'Law, Linguistics, Mathematics, Medicine, Modern Languages, Music, Nursing, Philosophy, Physics, Psychology',
);
